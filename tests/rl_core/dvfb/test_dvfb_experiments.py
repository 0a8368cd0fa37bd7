import math

import numpy as np
import pytest
import torch

from rl_core.bundle import Bundle
from rl_core.data.replay import ReplayBuffer
from rl_core.dvfb.experiments import data_swap, fine_tuning, from_scratch, judged_again, random_actions, zero_shot
from rl_core.dvfb.figures import action_spread, coverage, log_spread, particle_entropy
from rl_core.dvfb.finetune_config import FineTuneConfig
from rl_core.errors import ArmstackError
from rl_core.experiments import load_plan
from rl_core.experiments.runner import ROOT
from rl_core.methods import get_method
from rl_core.training.sources import transition_columns
from tests.rl_core.dvfb.conftest import WORLD
from tests.rl_core.dvfb.small import CONTRACT, SMALL, make_learner

RUN = {"updates": 20, "log_every": 10, "checkpoint_every": 10}
CELLS = {"channel": "position", "low": [-1, -1], "high": [1, 1], "each": 5}
TASKS = {"world": WORLD, "overrides": SMALL, "trainer": RUN, "episodes": 4}
CURVE = {"return_25", "return_50", "return_75", "return_end", "return_lowest", "return_mean_of_run"}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dvfb") / "full-s0-0a1b2c3d4e5f"
    (folder.parent / "full-s0-000000000000").mkdir()  # an older one that was cut
    goals = {"channel": "position", "radius": 0.3, "positions": [[0.0, 0.0], [5.0, 5.0]]}
    return folder, zero_shot({**TASKS, "method": "dvfb", "rewards": ["left", "never"], "goals": goals, "cells": CELLS}, 0, folder)


def test_tasks_are_judged_under_the_inferred_and_a_blind_skill(judged):
    _, figures = judged
    assert figures["unseen_tasks"] == 2 and figures["return_never"] == 0  # rewards that no state has: nothing is known of them
    assert figures["return_mean"] >= figures["return_left"] / 4 and "return_[0.0, 0.0]" not in figures
    assert 0 <= figures["return_mean_blind"] <= 10 and figures["action_spread"] > 0 and figures["effective_rank"] > 1


def test_coverage_is_the_share_of_cells_that_the_replay_has_been_in(judged):
    folder, figures = judged
    replay = ReplayBuffer.load(folder / "replay")
    points = replay.gather_columns(np.arange(len(replay)))["next_observation"][:, 1:]
    assert figures["coverage"] == pytest.approx(len({tuple(cell) for cell in ((points + 1) / 0.4).floor().clamp(max=4).tolist()}) / 25)
    assert coverage(torch.tensor([[1.0], [0.99], [-1.0], [1.1]]), [-1.0], [1.0], 4) == 0.5
    random = random_actions({"world": WORLD, "cells": CELLS, "steps": 60}, 0, folder)
    assert 0.1 < random["coverage"] < 1.0 and random == random_actions({"world": WORLD, "cells": CELLS, "steps": 60}, 0, folder)


def test_fb_learns_offline_from_another_runs_replay(judged):
    folder, _ = judged
    swapped = folder.parent / "swap-s0"
    figures = data_swap({**TASKS, "rewards": ["left"], "replay_of": "full"}, 0, swapped)
    bundle, other = Bundle.load(swapped / "bundle"), Bundle.load(folder / "bundle")
    assert bundle.config["variant"] == "fb_only" and 0 <= figures["return_left"] <= 20
    assert torch.equal(bundle.arrays["states.observation"], other.arrays["states.observation"])
    assert not torch.equal(bundle.weights["actor.head.0.weight"], other.weights["actor.head.0.weight"])


def test_a_bundle_is_judged_again_under_another_inference(judged):
    folder, figures = judged
    config = {**TASKS, "rewards": ["left"], "bundle_of": "full"}
    assert judged_again(config, 0, folder)["return_left"] == figures["return_left"]
    others = [{"percentile": 0.0}, {"samples": 40}, {"sign": -1}]
    assert any(judged_again({**config, "inference": other}, 0, folder)["return_left"] != figures["return_left"] for other in others)


def test_fine_tuning_starts_from_another_runs_bundle(judged):
    folder, _ = judged
    trainer = {**RUN, "eval_every": 5}
    config = {"world": WORLD, "reward": "left", "bundle_of": "full", "trainer": trainer, "overrides": {"still_steps": 10}}
    figures = fine_tuning(config, 0, folder.parent / "tuned-s0")
    assert set(figures) == CURVE | {"return_start"} and all(0 <= value <= 20 for value in figures.values())
    assert figures["return_lowest"] <= figures["return_mean_of_run"]


def test_the_same_task_is_learned_from_scratch(tmp_path):
    overrides = {"hidden": [8], "batch_size": 8, "random_steps": 10, "replay_size": 100}
    figures = from_scratch(
        {"method": "td3", "world": WORLD, "reward": "left", "trainer": {**RUN, "eval_every": 10}, "overrides": overrides}, 0, tmp_path
    )
    assert set(figures) == CURVE and all(0 <= value <= 20 for value in figures.values())


def test_a_run_that_another_builds_on_is_missed_by_name(tmp_path):
    with pytest.raises(ArmstackError, match="no finished run full-s7"):
        judged_again({**TASKS, "rewards": ["left"], "bundle_of": "full"}, 7, tmp_path / "again-s7")


def test_a_policy_that_ignores_z_has_no_spread():
    learner = make_learner()
    learner.replay = ReplayBuffer(300, transition_columns(CONTRACT))
    rows = np.random.default_rng(0).normal(size=(300, 3))
    columns = {"observation": rows, "action": rows[:, :2], "reward": rows[:, 0], "terminal": rows[:, 0], "next_observation": rows}
    learner.replay.extend(columns)
    assert action_spread(learner.bundle(), 0) > 0.01
    with torch.no_grad():
        learner.actor.skilled[0].weight[:, 3:] = 0.0
    assert action_spread(learner.bundle(), 0) < 1e-6


def test_particle_entropy_grows_with_the_spread():
    bundle, entropies = make_learner().bundle(), []
    for scale in (1.0, 10.0):
        replay = ReplayBuffer(300, transition_columns(CONTRACT))
        rows = scale * np.random.default_rng(0).normal(size=(300, 3))
        columns = {"observation": rows, "action": rows[:, :2], "reward": rows[:, 0], "terminal": rows[:, 0], "next_observation": rows}
        replay.extend(columns)
        entropies.append(particle_entropy(bundle, replay))
    assert entropies[1] - entropies[0] == pytest.approx(math.log(10), abs=1e-3)


def test_every_planned_run_has_settings_that_can_be_used():
    plan = load_plan("dvfb", ROOT)
    for run in plan.runs:
        config, kind = run.config, run.load_function().__name__
        overrides = config.get("overrides", {})
        if kind in ("zero_shot", "data_swap"):
            get_method(config["method"]).config_class.preset("cpu").override(**overrides)
        elif kind == "fine_tuning":
            FineTuneConfig.preset("cpu").override(**overrides)
        elif kind == "from_scratch":
            get_method(config["method"]).config_class().override(**overrides)
        other = config.get("replay_of", config.get("bundle_of"))
        assert other is None or f"{other}-s{run.seed}" in [earlier.name for earlier in plan.runs[: plan.runs.index(run) - 2]]


def test_log_spread_rises_with_spread_as_an_entropy_does():
    states = torch.randn(500, 3, generator=torch.Generator().manual_seed(0))
    assert log_spread(5.0 * states) == pytest.approx(log_spread(states) + math.log(5.0), abs=1e-4)
    line = torch.arange(101.0)[:, None]  # inside, the twelfth nearest is 6 away, at either end 12
    ends = sum(math.log(12 - k) for k in range(6))
    assert log_spread(line) == pytest.approx((89 * math.log(6) + 2 * ends) / 101, abs=1e-5)
    assert log_spread(torch.zeros(20, 2)) < log_spread(states[:20, :2])  # all in one place: low, not an error
