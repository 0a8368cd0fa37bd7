import math

import numpy as np
import pytest
import torch

from rl_core.bundle import Bundle
from rl_core.data.replay import ReplayBuffer
from rl_core.dvfb.experiments import action_spread, data_swap, fine_tuning, particle_entropy, zero_shot
from rl_core.training.sources import transition_columns
from tests.rl_core.dvfb.conftest import WORLD
from tests.rl_core.dvfb.small import CONTRACT, SMALL, make_learner

RUN = {"updates": 20, "log_every": 10, "checkpoint_every": 10}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dvfb") / "full-s0"
    config = {"method": "dvfb", "world": WORLD, "rewards": ["left", "never"], "overrides": SMALL, "trainer": RUN, "episodes": 4}
    return folder, zero_shot(config, 0, folder)


def test_tasks_are_judged_under_the_inferred_and_a_blind_skill(judged):
    _, figures = judged
    assert figures["unseen_tasks"] == 1 and figures["return_never"] == 0  # a reward that no state has seen: nothing is known of it
    assert figures["return_mean"] == pytest.approx(figures["return_left"] / 2)
    assert 0 <= figures["return_mean_blind"] <= 10 and figures["action_spread"] > 0


def test_fb_learns_offline_from_another_runs_replay(judged):
    folder, _ = judged
    config = {"world": WORLD, "rewards": ["left"], "overrides": SMALL, "trainer": RUN, "episodes": 4, "replay_of": folder.name}
    figures = data_swap(config, 1, folder.parent / "swap-s1")
    bundle, other = Bundle.load(folder.parent / "swap-s1" / "bundle"), Bundle.load(folder / "bundle")
    assert bundle.config["variant"] == "fb_only" and 0 <= figures["return_left"] <= 20
    assert torch.equal(bundle.arrays["states.observation"], other.arrays["states.observation"])
    assert not torch.equal(bundle.weights["actor.head.0.weight"], other.weights["actor.head.0.weight"])


def test_fine_tuning_starts_from_another_runs_bundle(judged):
    folder, _ = judged
    trainer = {**RUN, "eval_every": 5}
    config = {"world": WORLD, "reward": "left", "bundle_of": folder.name, "trainer": trainer, "overrides": {"still_steps": 10}}
    figures = fine_tuning(config, 0, folder.parent / "tuned-s0")
    assert set(figures) == {"return_start", "return_end", "return_mean_of_run"}
    assert all(0 <= value <= 20 for value in figures.values())


def test_a_policy_that_ignores_z_has_no_spread(tmp_path):
    learner = make_learner()
    learner.replay = ReplayBuffer(300, transition_columns(CONTRACT))
    rows = np.random.default_rng(0).normal(size=(300, 3))
    columns = {"observation": rows, "action": rows[:, :2], "reward": rows[:, 0], "terminal": rows[:, 0], "next_observation": rows}
    learner.replay.extend(columns)
    assert action_spread(learner.bundle().save(tmp_path / "b"), 0) > 0.01
    with torch.no_grad():
        learner.actor.skilled[0].weight[:, 3:] = 0.0
    assert action_spread(learner.bundle().save(tmp_path / "b"), 0) < 1e-6


def test_particle_entropy_grows_with_the_spread(tmp_path):
    folder, entropies = make_learner().bundle().save(tmp_path / "b"), []
    for scale in (1.0, 10.0):
        replay = ReplayBuffer(300, transition_columns(CONTRACT))
        rows = scale * np.random.default_rng(0).normal(size=(300, 3))
        columns = {"observation": rows, "action": rows[:, :2], "reward": rows[:, 0], "terminal": rows[:, 0], "next_observation": rows}
        replay.extend(columns)
        entropies.append(particle_entropy(folder, replay))
    assert entropies[1] - entropies[0] == pytest.approx(math.log(10), abs=1e-3)
