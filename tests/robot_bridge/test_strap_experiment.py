"""The experiments of STRAP, on a corpus of one demonstration a task: every recipe and ablation runs, and changes what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_core.data.formats import read_dataset
from rl_core.strap import policy_instructions
from rl_core.strap.chunk_windows import is_piece
from rl_core.strap.corpus import read_target
from rl_core.strap.pieces import CONTEXT
from robot_bridge import strap_experiment
from robot_bridge.corpus import CorpusPlan, demonstration_world
from tests.rl_core.strap.policy.told import Hashed

SEED = 77
TOLD = "put the blue can in the left tray"
CONFIG: dict[str, Any] = {
    "corpus": {"demos": 1, "target_demos": 2, "world": "osc_pose"},
    "target": "can_left",
    "channels": ["eef_pos", "gripper_pos", "gripper_to_can_pos", "gripper_to_left_tray_pos"],
    "updates": 4,
    "episodes": 2,
    "overrides": {"layers": 1, "width": 16, "batch_size": 4},
}


@pytest.fixture(autouse=True)
def _hashed_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences without the packaged model."""
    monkeypatch.setattr(policy_instructions, "sentence_encoder", Hashed)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where runs lie beside each other; the data are recorded by the first."""
    return tmp_path_factory.mktemp("strap")


def test_pieces_of_strap_agree_most_with_the_tags(folder: Path) -> None:
    figures = strap_experiment.retrieval({**CONFIG, "pieces": 16}, SEED, folder / "retrieval")
    assert figures["strap_agreement_percent"] > figures["full_trajectory_agreement_percent"] + 10
    assert figures["strap_agreement_percent"] > figures["random_agreement_percent"] + 30
    assert figures["shuffled_agreement_percent"] < 30 and figures["primitives"] == 11
    assert figures["strap_run_mean"] >= 20 and figures["random_run_mean"] == figures["strap_run_mean"]


@pytest.mark.parametrize("recipe", ["bc", "mt", "ft"])
def test_every_baseline_is_trained_and_judged(folder: Path, recipe: str) -> None:
    figures = strap_experiment.policy({**CONFIG, "recipe": recipe}, SEED, folder / recipe)
    assert figures["episodes"] == 2 and 0 <= figures["success_percent_low"] <= figures["success_percent"] <= figures["success_percent_high"]
    assert "shifted_success_percent" not in figures


def test_shifted_objects_are_judged_too_and_a_run_called_again_finds_the_same(folder: Path) -> None:
    config = {**CONFIG, "recipe": "strap", "plan": {"pieces": 8}, "shifted": True}
    figures = strap_experiment.policy(config, SEED, folder / "strap")
    weights = (folder / "strap/train/bundle/weights.safetensors").read_bytes()
    assert strap_experiment.policy(config, SEED, folder / "strap") == figures and "shifted_success_percent" in figures
    assert (folder / "strap/train/bundle/weights.safetensors").read_bytes() == weights


def test_ablations_change_the_pieces_alone(folder: Path) -> None:
    data = strap_experiment._Data(CONFIG, SEED, folder)
    target = read_target(data.target)
    (folder / "ablation").mkdir(exist_ok=True)
    config = {"plan": {"pieces": 8}, "context": False, "told": TOLD}
    changed = strap_experiment._retrieved(config, data, target, SEED, folder / "ablation")
    whole = read_dataset(folder / "ablation/retrieved.hdf5")
    assert len(changed) == len(whole)
    for before, after in zip(whole.episodes, changed.episodes, strict=True):
        if not is_piece(before):
            assert after.meta == before.meta and len(after) == len(before)
            continue
        facts = before.meta["retrieved"]
        assert len(after) == facts["stop"] - facts["start"] == len(before) - 2 * CONTEXT
        assert after.meta["lang"] == TOLD
        np.testing.assert_array_equal(after.actions, before.actions[CONTEXT:-CONTEXT])
        np.testing.assert_array_equal(after.observations["eef_pos"], before.observations["eef_pos"][CONTEXT : CONTEXT + len(after) + 1])
    assert {episode.meta["lang"] for episode in whole.episodes if is_piece(episode)} - {TOLD}


def test_an_episode_ends_at_its_first_success() -> None:
    from sim_envs.experts import make_tagged_expert

    env = strap_experiment.UntilSuccess(demonstration_world(CorpusPlan(world="osc_pose"), "reach_block"))
    expert = make_tagged_expert("reach_block", SEED)
    observation, _ = env.reset(seed=SEED)
    expert.reset(SEED)
    terminated = success = truncated = False
    while not (terminated or truncated):
        observation, _, terminated, truncated, info = env.step(expert.act(observation))
        success = info["success"]
    assert terminated and success and not truncated
    env.close()
