"""`armstack corpus`: what it records, that it goes on where it stopped, and that tags stay out of what is learnt from."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from itertools import groupby
from pathlib import Path

import h5py
import numpy as np
import pytest

from rl_core.data.annotations import instruction, primitive_tags
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats import read_dataset, write_dataset
from rl_core.data.recording import finished_episodes
from rl_core.errors import ArmstackError
from rl_core.training.evaluation import EVALUATION_OFFSET
from robot_bridge import corpus as corpus_module
from robot_bridge.cli import main
from robot_bridge.corpus import CorpusPlan, demonstrate, demonstration_world
from robot_bridge.demonstrations import read_demonstrations
from robot_bridge.tagged_recording import SETTLED
from sim_envs.arm.tasks import WORKBENCH
from sim_envs.arm.tasks.workbench import CORPUS, TARGETS
from tests.robot_bridge.command_line import Cli

PLAN = ("--plan.demos", "1", "--plan.target-demos", "1", "--plan.world", "osc_pose")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One demonstration of each task."""
    folder = tmp_path_factory.mktemp("corpus") / "corpus"
    assert main(["corpus", "--out", str(folder), *PLAN, "--processes", "1"]) == 0
    return folder


def test_every_task_is_demonstrated_with_its_words_and_tags(corpus: Path) -> None:
    prior = read_demonstrations(corpus / "prior")
    targets = [read_demonstrations(corpus / "targets" / task.name) for task in TARGETS]
    assert Counter(episode.meta["task"] for episode in prior.episodes) == {task.name: 1 for task in CORPUS}
    assert [data.episodes[0].meta["task"] for data in targets] == [task.name for task in TARGETS]
    for data in (prior, *targets):
        assert data.contract == prior.contract
        for episode in data.episodes:
            task = WORKBENCH[episode.meta["task"]]
            assert instruction(episode) == task.instruction and episode.success and episode.truncated
            assert {tag for tag, _ in groupby(primitive_tags(episode))} == set(task.primitives)
            assert SETTLED < len(episode) < task.horizon and 0 <= episode.meta["seed"] < EVALUATION_OFFSET
            np.testing.assert_array_equal(np.diff(episode.stamps_ns), 50_000_000)


def test_no_target_lies_in_the_prior_and_no_tag_in_what_is_observed(corpus: Path) -> None:
    prior = read_demonstrations(corpus / "prior")
    words = {task.instruction for task in TARGETS}
    tags = {primitive for task in WORKBENCH.values() for primitive in task.primitives}
    for episode in prior.episodes:
        assert instruction(episode) not in words
        assert set(episode.observations) == {channel.name for channel in prior.contract.observation}
    for channel in prior.contract.observation:
        assert channel.kind in ("vector", "quaternion") and channel.name not in tags


def test_instructions_survive_packing_into_a_robomimic_file(corpus: Path, tmp_path: Path) -> None:
    prior = read_demonstrations(corpus / "prior")
    path = tmp_path / "prior.hdf5"
    write_dataset(prior, path)
    packed = read_dataset(path)
    assert fingerprint(packed) == fingerprint(prior)
    with h5py.File(path) as file:
        for name, episode in zip((f"demo_{k}" for k in range(len(packed))), packed.episodes, strict=True):
            assert json.loads(file["data"][name].attrs["ep_meta"]) == {"lang": instruction(episode)}
            assert primitive_tags(episode) == primitive_tags(next(e for e in prior.episodes if e.uuid == episode.uuid))


def test_a_stopped_recording_goes_on_and_gives_the_same(cli: Cli, corpus: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(corpus, tmp_path / "corpus")
    gone = [finished_episodes(folder / "prior")["reach_block-0-00000"], *finished_episodes(folder / "targets/can_left").values()]
    for file in gone:
        file.unlink()
    kept = {file: file.stat().st_mtime_ns for file in folder.rglob("*.hdf5")}
    outcome = cli("corpus", "--out", folder, *PLAN, "--processes", 1, "--json")
    assert outcome.status == 0 and outcome.figures["recorded_now"] == 2
    assert outcome.figures["demonstrations"] == {"prior": len(CORPUS), **{f"targets/{task.name}": 1 for task in TARGETS}}
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    for part in ("prior", "targets/can_left"):
        again, whole = read_demonstrations(folder / part), read_demonstrations(corpus / part)
        assert outcome.figures["steps"][part] == whole.steps
        assert fingerprint(again) == fingerprint(whole)


def test_another_plan_in_the_same_folder_is_refused(cli: Cli, corpus: Path) -> None:
    outcome = cli("corpus", "--out", corpus, *PLAN, "--plan.seed", 3)
    assert outcome.status == 2 and str(corpus) in outcome.err and "seed: there 0, asked for 3" in outcome.err


@pytest.mark.parametrize(
    ("options", "found"),
    [(("--plan.demos", 0), "plan.demos: 0"), (("--processes", 0), "processes: 0"), (("--plan.image-size", 0), "plan.image_size: 0")],
)
def test_numbers_that_make_no_sense_are_refused(cli: Cli, tmp_path: Path, options: tuple[object, ...], found: str) -> None:
    outcome = cli("corpus", "--out", tmp_path / "new", *options)
    assert outcome.status == 2 and found in outcome.err and "valid: 1 or more" in outcome.err
    assert not (tmp_path / "new").exists()


def test_a_demonstrator_that_always_fails_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module, "ATTEMPTS", 2)
    plan = CorpusPlan(world="osc_pose")
    env = corpus_module.make_world("push_button", "osc_pose", 10)  # too little time
    with pytest.raises(ArmstackError, match="push_button: demonstration 0 failed from 2 starts"):
        demonstrate(env, plan, "push_button", 0)


def test_an_unknown_task_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ArmstackError, match="'lift', valid: reach_block.*robosuite_lift"):
        demonstration_world(CorpusPlan(), "lift")


def test_pictures_are_recorded_beside_the_channels(graphics: None) -> None:
    plan = CorpusPlan(images=True, image_size=32)
    env = demonstration_world(plan, "reach_block")
    episode = demonstrate(env, plan, "reach_block", 0)
    env.close()
    plain = demonstration_world(CorpusPlan(), "reach_block")
    same = demonstrate(plain, CorpusPlan(), "reach_block", 0)
    np.testing.assert_array_equal(episode.actions, same.actions)  # pictures change nothing else
    for camera in ("front", "wrist"):
        frames = episode.observations[f"{camera}_image"]
        assert frames.shape == (len(episode) + 1, 32, 32, 3) and frames.dtype == np.uint8
        assert len(np.unique(frames.reshape(len(frames), -1), axis=0)) > len(frames) / 2  # the arm moves in them
