import dataclasses
import math
import time

import numpy as np
import pytest
import torch

from rl_core.bundle import BundleError
from rl_core.dvfb.inference import (
    InferenceError,
    SkillInference,
    backward_net,
    goal_columns,
    inference_from_bundle,
    regressed_skill,
    rewarded,
    weighted_skill,
)
from rl_core.dvfb.networks import BackwardNet
from rl_core.dvfb.skills import on_sphere
from rl_core.dvfb.states import CarriedStates
from tests.rl_core.dvfb.small import CONTRACT, config, left, make_learner


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def states(count: int = 300) -> CarriedStates:
    following = draw(count, 3).clamp(-1, 1)
    return CarriedStates(observation=following - 0.01, action=draw(count, 2, seed=1).clamp(-1, 1), next_observation=following)


def inference(count: int = 300, **overrides) -> SkillInference:
    learner = make_learner(**overrides)
    return SkillInference(learner.config, CONTRACT, learner.nets.b, states(count))


def test_the_best_percent_is_kept_but_at_least_32():
    rewards = torch.linspace(0, 1, 10_000)[torch.randperm(10_000, generator=torch.Generator().manual_seed(0))]
    kept = rewarded(rewards)
    assert len(kept) == 100 and rewards[kept].min() >= 0.99
    few = rewarded(rewards[:1000])
    assert len(few) == 32 and set(few.tolist()) == set(rewards[:1000].topk(32).indices.tolist())
    sparse = torch.zeros(10_000)
    sparse[:5] = 1.0
    assert len(rewarded(sparse)) == 10_000  # the percentile is the minimum: all
    assert len(rewarded(rewards, percentile=0.0)) == 10_000
    assert len(rewarded(rewards[:8])) == 8


def test_skill_is_the_mean_of_rewarded_features_on_the_sphere():
    features, rewards = draw(50, 4), torch.zeros(50)
    rewards[3], rewards[7] = 1.0, 2.0
    z = weighted_skill(features, rewards)
    torch.testing.assert_close(z, on_sphere(features[3] + 2 * features[7]))
    assert z.norm().item() == pytest.approx(math.sqrt(4), abs=1e-5)


@pytest.mark.parametrize("skill_of", [weighted_skill, regressed_skill])
@pytest.mark.parametrize("scale", [1e-6, 0.01, 100.0])
def test_the_rewards_scale_leaves_z_unchanged(skill_of, scale):
    features, rewards = draw(400, 4), draw(400, seed=1).abs()
    torch.testing.assert_close(skill_of(features, scale * rewards), skill_of(features, rewards), rtol=1e-4, atol=1e-5)
    assert skill_of(features, rewards).norm().item() == pytest.approx(math.sqrt(4), abs=1e-5)


def test_negative_rewards_ask_for_the_best_states_and_not_away_from_them():
    features = torch.cat([torch.tensor([[1.0, 0.0]]).expand(50, 2), torch.tensor([[0.0, 1.0]]).expand(950, 2)])
    rewards = torch.cat([torch.full((50,), -1.0), torch.full((950,), -10.0)])
    torch.testing.assert_close(weighted_skill(features, rewards), on_sphere(torch.tensor([1.0, 0.0])))


def test_regression_finds_the_rewards_weights():
    features, weights = draw(400, 4), draw(4, seed=1)
    torch.testing.assert_close(regressed_skill(features, features @ weights), on_sphere(weights), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("skill_of", [weighted_skill, regressed_skill])
def test_rewards_that_say_nothing_are_refused(skill_of):
    with pytest.raises(InferenceError, match="reward is 0 at all 5 states"):
        skill_of(draw(5, 4), torch.zeros(5))
    with pytest.raises(InferenceError, match="nan at state 2"):
        skill_of(draw(5, 4), torch.tensor([0.0, 1.0, float("nan"), 0.0, 0.0]))


def test_a_reward_function_labels_the_carried_states():
    found = inference()
    expected = weighted_skill(found.features, (found.states.next_observation[:, 1] < 0).float())
    torch.testing.assert_close(found.from_function(left), expected)
    with pytest.raises(InferenceError, match=r"shape \(300, 1\), valid: numbers of shape \(300,\)"):
        found.from_function(lambda observation, action, following: np.ones((len(action), 1)))


@pytest.mark.parametrize("goal", ["canonical", "pair", "pair_compat"])
def test_features_are_those_of_the_goals_the_states_reached(goal):
    found = inference(goal=goal)
    seen = found.states.next_observation
    if goal != "canonical":
        seen = torch.cat([found.states.observation, seen], -1)
    torch.testing.assert_close(found.features, found.b(seen).detach())


def test_successor_features_regress():
    found = inference(variant="sf_laplacian")
    rewards = torch.rand(300, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(found.from_rewards(rewards), regressed_skill(found.features, rewards))


def test_a_goal_asks_for_the_states_within_2_cm():
    found = inference(3000)
    goal = found.states.next_observation[17, 1:] + 0.003
    near = (found.states.next_observation[:, 1:] - goal).norm(dim=-1) < 0.02
    assert 1 <= near.sum() < 100
    torch.testing.assert_close(found.from_goal("position", goal), weighted_skill(found.features, near.float()))
    with pytest.raises(InferenceError, match=r"is 8\.\d+ m from the nearest carried state \[.*valid: within 0.02 m"):
        found.from_goal("position", torch.tensor([7.0, 7.0]))
    with pytest.raises(InferenceError, match=r"valid: 2 finite numbers for \('x', 'y'\)"):
        found.from_goal("position", torch.zeros(3))
    with pytest.raises(InferenceError, match="channel 'elbow', valid: clock, position"):
        found.from_goal("elbow", torch.zeros(2))


def test_a_goals_columns_are_the_newest_sample_of_the_channel():
    clock, position = CONTRACT.observation
    past = dataclasses.replace(CONTRACT, observation=(dataclasses.replace(clock, history=3), dataclasses.replace(position, history=2)))
    assert goal_columns(past, "position") == [5, 6] and goal_columns(past, "clock") == [2]


@pytest.mark.parametrize("goal", ["canonical", "pair"])
def test_b_sees_the_channels_it_is_given_and_no_others(goal: str) -> None:
    b = backward_net(config(goal=goal, goal_channels=["position"]), CONTRACT)
    reached = torch.randn(5, 3 if goal == "canonical" else 6)
    clocks = reached.clone()
    clocks[:, ::3] += 1.0  # the clock comes first
    elsewhere = reached.clone()
    elsewhere[:, -1] += 1.0
    assert torch.equal(b(reached), b(clocks)) and not torch.allclose(b(reached), b(elsewhere))
    whole = backward_net(config(goal=goal), CONTRACT)
    assert not torch.allclose(whole(reached), whole(clocks))
    with pytest.raises(InferenceError, match="channel 'elbow', valid: clock, position"):
        backward_net(config(goal_channels=["elbow"]), CONTRACT)


def test_inference_takes_less_than_50_ms_on_10_000_states():
    """At the paper's sizes; the features of the states are computed when the bundle is loaded."""
    settings = config(z_dim=50, backward_hidden=526)
    found = SkillInference(settings, CONTRACT, BackwardNet(3, 526, 50), states(10_000))
    seconds = []
    for _ in range(5):
        started = time.process_time()
        found.from_function(left)
        found.from_goal("position", found.states.next_observation[5, 1:])
        seconds.append(time.process_time() - started)
    assert min(seconds) < 0.05


def test_a_bundle_without_states_says_who_writes_them():
    learner = make_learner()
    with pytest.raises(BundleError, match="armstack pretrain"):
        inference_from_bundle(learner.bundle())
    with pytest.raises(BundleError, match="valid: dvfb"):
        inference_from_bundle(dataclasses.replace(learner.bundle(), method="bc"))
    short = dataclasses.replace(learner.bundle(), arrays={**states().arrays(), "states.action": torch.zeros(2, 2)})
    with pytest.raises(BundleError, match="equally many"):
        inference_from_bundle(short)
    wide = dataclasses.replace(
        learner.bundle(), arrays={f"states.{name}": torch.zeros(4, 9) for name in ("observation", "action", "next_observation")}
    )
    with pytest.raises(BundleError, match="states of 9 numbers, the contract has 3"):
        inference_from_bundle(wide)
