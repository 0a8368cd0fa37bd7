"""The hierarchy at run time, its bundle, and its figures."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from rl_core.bundle import Bundle, BundleError
from rl_core.data.normalizer import NormalizerError
from rl_core.pear.collection import collect
from rl_core.pear.config import VARIANTS
from rl_core.pear.evaluation import evaluate_goals
from rl_core.pear.learner import PEARLearner
from rl_core.pear.policy import policy_from_bundle
from rl_core.pear.worlds import GoalWorldEnv
from rl_core.policy import Policy
from rl_core.training.evaluation import evaluate
from rl_core.training.rollout import rollout
from tests.rl_core.pear.point_world import GoTo, PointWorlds, ScriptedPointWorlds
from tests.rl_core.pear.test_pear_learner import make


def trained(folder: Path, **changes: object) -> PEARLearner:
    learner, source = make(folder, **changes)
    for _ in range(3):
        learner.update(source.next_batch())
    return learner


def observation(seeds: list[int]) -> TensorDict:
    seen = PointWorlds(len(seeds)).reset(seeds)
    values = {"position": seen["observation"][:, :2], "bias": seen["observation"][:, 2:], "desired_goal": seen["desired_goal"]}
    return TensorDict({name: torch.from_numpy(value) for name, value in values.items()}, batch_size=[len(seeds)])


def test_a_subgoal_is_kept_for_c_steps_and_then_chosen_anew(tmp_path: Path) -> None:
    policy = trained(tmp_path, variant="hier", primitive_steps=3).policy()
    assert isinstance(policy, Policy)
    state = policy.reset([0, 1])
    subgoals, ages = [], []
    for step in range(7):
        obs = observation([10 + step, 20 + step])  # elsewhere each time, so that a new choice is a new subgoal
        chunk, state = policy.act(obs, policy.prepare({}), state)
        assert chunk.values.shape == (2, 1, 2) and chunk.values.abs().max() <= 1.0
        subgoals.append(chunk.info["subgoal"])
        ages.append(chunk.info["age"].tolist())
    assert ages == [[age, age] for age in (0, 1, 2, 0, 1, 2, 0)]
    changed = [not torch.equal(a, b) for a, b in zip(subgoals, subgoals[1:], strict=False)]
    assert changed == [False, False, True, False, False, True]


def test_a_row_that_begins_anew_decides_at_once_and_leaves_the_others_alone(tmp_path: Path) -> None:
    policy = trained(tmp_path, variant="hier", primitive_steps=3).policy()
    state = policy.reset([0, 1])
    first, state = policy.act(observation([3, 4]), policy.prepare({}), state)
    state = policy.reset_rows(state, [1], [9])
    second, _ = policy.act(observation([5, 6]), policy.prepare({}), state)
    assert second.info["age"].tolist() == [1, 0]
    assert torch.equal(second.info["subgoal"][0], first.info["subgoal"][0])
    assert not torch.equal(second.info["subgoal"][1], first.info["subgoal"][1])


def test_act_is_pure(tmp_path: Path) -> None:
    policy = trained(tmp_path).policy()
    state = policy.reset([0])
    one, after = policy.act(observation([3]), policy.prepare({}), state)
    two, again = policy.act(observation([3]), policy.prepare({}), state)
    assert torch.equal(one.values, two.values) and state.tensors["age"].tolist() == [0] and after.tensors["age"].tolist() == [1]


def test_exploration_draws_random_actions_as_often_as_asked(tmp_path: Path) -> None:
    learner = trained(tmp_path, variant="flat", random_share=1.0)
    policy = learner.explore()
    state = policy.reset(range(400))
    obs = observation([3] * 400)
    chunk, _ = policy.act(obs, policy.prepare({}), state)
    values = chunk.values.flatten()
    assert (
        values.min() < -0.9
        and values.max() > 0.9
        and abs(float(values.mean())) < 0.1
        and float(values.std()) == pytest.approx(0.577, abs=0.04)
    )
    tested = learner.explore(lower=False)
    chunk, _ = tested.act(obs, tested.prepare({}), tested.reset(range(400)))
    assert float(chunk.values.std(dim=0).max()) < 1e-6


class ThreeNumbers(GoTo):
    arguments = 3


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_saved_bundle_acts_as_the_learner_did(variant: str, tmp_path: Path) -> None:
    learner = trained(tmp_path / "replay", variant=variant)
    folder = learner.bundle().save(tmp_path / "bundle")
    primitives = GoTo() if variant == "raps" else ThreeNumbers()  # a world's primitives are offered whatever the variant
    loaded = policy_from_bundle(Bundle.load(folder), primitives=primitives)
    policy = learner.policy()
    states = [policy.reset([0, 1]), loaded.reset([0, 1])]
    for step in range(6):
        (one, states[0]), (two, states[1]) = (
            each.act(observation([step, 30 + step]), each.prepare({}), state) for each, state in zip((policy, loaded), states, strict=True)
        )
        assert torch.equal(one.values, two.values) and torch.equal(one.info["subgoal"], two.info["subgoal"])
    assert loaded.goal.threshold == pytest.approx(0.2)


def test_bundles_that_do_not_fit_are_refused_by_name(tmp_path: Path) -> None:
    bundle = trained(tmp_path).bundle()
    with pytest.raises(BundleError, match="method 'dac', valid: pear"):
        policy_from_bundle(dataclasses.replace(bundle, method="dac"))
    with pytest.raises(BundleError, match=r"needed are \['goal.centre'"):
        policy_from_bundle(dataclasses.replace(bundle, arrays={}))
    with pytest.raises(BundleError, match="normalizer is null"):
        policy_from_bundle(dataclasses.replace(bundle, normalizer=None))
    with pytest.raises(NormalizerError, match="needed are"):
        renamed = {("observations" if name == "observation" else name): value for name, value in bundle.normalizer.items()}
        policy_from_bundle(dataclasses.replace(bundle, normalizer=renamed))
    with pytest.raises(BundleError, match="give `primitives`"):
        policy_from_bundle(trained(tmp_path / "raps", variant="raps").bundle())


def test_the_higher_level_drives_scripted_primitives(tmp_path: Path) -> None:
    learner = trained(tmp_path, variant="raps", primitive_steps=4)
    episodes = collect(ScriptedPointWorlds(3), learner.policy(), [0, 1, 2])
    asked = PointWorlds.goal.decode(episodes.decisions[0])
    way = asked - episodes.observation[0, :, :2]
    assert np.allclose(episodes.actions[0], np.clip(way / 0.25, -1, 1), atol=1e-5)


def test_one_row_as_a_gymnasium_world_is_the_same_episode(tmp_path: Path) -> None:
    policy = trained(tmp_path).policy()
    rows = collect(PointWorlds(2), policy, [7, 8])
    env = GoalWorldEnv(PointWorlds)
    steps = list(rollout(policy, [env], [8]))
    assert len(steps) == 12 and steps[-1].truncated and not any(step.terminated for step in steps)
    found = np.stack([step.observation["position"] for step in steps])
    assert np.allclose(found, rows.observation[1:, 1, :2], atol=1e-6)
    assert [step.info["success"] for step in steps] == rows.space.reached(rows.achieved[1:, 1], rows.goal[1]).tolist()
    assert evaluate(policy, lambda: GoalWorldEnv(PointWorlds), [1, 2]).success_rate is not None


def test_figures_count_each_seed_once(tmp_path: Path) -> None:
    policy = trained(tmp_path, variant="flat").policy()

    class Known(PointWorlds):
        """Row of seed k starts at its goal where k is even, and cannot move."""

        def reset(self, seeds):
            super().reset(seeds)
            self.position = self.target + np.array([[0.0 if seed % 2 == 0 else 1.0, 0.0] for seed in seeds])
            return self._seen()

        def step(self, actions):
            return self._seen()

    figures = evaluate_goals(policy, Known(4), [0, 2, 4, 6, 1])
    assert figures.success_rate == pytest.approx(0.8) and figures.final_distance == pytest.approx(0.2, abs=1e-6) and figures.episodes == 5
    assert figures.hit_rate is None and "eval/hit_rate" not in figures.metrics()
