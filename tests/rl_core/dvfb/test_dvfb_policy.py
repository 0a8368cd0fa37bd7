import dataclasses
import math

import pytest
import torch
from tensordict import TensorDict

from rl_core.bundle import Bundle, BundleError
from rl_core.conditioned_policy import ConditionError
from rl_core.contract import ContractMismatch
from rl_core.dvfb.inference import InferenceError
from rl_core.dvfb.policy import DVFBPolicy, ExploringPolicy, policy_from_bundle, skill_contract, with_goal, with_skill
from rl_core.dvfb.skills import on_sphere
from rl_core.dvfb.states import CarriedStates
from rl_core.policy import Policy
from rl_core.training.rollout import rollout
from tests.rl_core.dvfb.small import CONTRACT, PointWorld, make_learner


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def observed(rows: int = 3) -> TensorDict:
    return TensorDict({"clock": draw(rows, 1), "position": draw(rows, 2, seed=1)}, batch_size=[rows])


def with_states(**overrides) -> Bundle:
    following = draw(500, 3).tanh()
    states = CarriedStates(observation=following, action=draw(500, 2), next_observation=following)
    return dataclasses.replace(make_learner(**overrides).bundle(), arrays=states.arrays())


def actions(policy, condition, rows: int = 3) -> torch.Tensor:
    return policy.act(observed(rows), policy.prepare(condition), policy.reset(range(rows)))[0].values


def test_the_policy_follows_the_skill_it_is_told():
    learner = make_learner()
    policy = learner.policy()
    assert isinstance(policy, Policy) and policy.contract == skill_contract(CONTRACT, 4)
    z = draw(4)
    flat = torch.cat([observed()["clock"], observed()["position"]], -1)
    expected = learner.actor(flat, on_sphere(z).expand(3, -1)).detach()
    torch.testing.assert_close(actions(policy, {"skill": z}).squeeze(1), expected)
    torch.testing.assert_close(actions(policy, {"skill": 7 * z}), actions(policy, {"skill": z}))  # only its direction counts
    assert not torch.allclose(actions(policy, {"skill": -z}), actions(policy, {"skill": z}))


def test_conditions_that_are_none_are_refused():
    policy = make_learner().policy()
    with pytest.raises(ConditionError, match="skill: missing"):
        policy.prepare({})
    for wrong in (torch.zeros(4), torch.zeros(3), torch.full((4,), float("nan"))):
        with pytest.raises(ConditionError, match="valid: 4 finite numbers"):
            policy.prepare({"skill": wrong})
    with pytest.raises(ContractMismatch, match="skill"):
        next(rollout(policy, [PointWorld()], [0]))
    assert next(rollout(policy, [PointWorld()], [0], condition={"skill": draw(4)})).action.shape == (2,)


@pytest.mark.parametrize("variant", ["full", "fb_only", "sf_laplacian"])
def test_a_saved_bundle_acts_as_the_learner(tmp_path, variant):
    learner = make_learner(variant=variant)
    loaded = policy_from_bundle(Bundle.load(learner.bundle().save(tmp_path / "b")))
    assert torch.equal(actions(loaded, {"skill": draw(4)}), actions(learner.policy(), {"skill": draw(4)}))


def test_a_solved_bundle_needs_no_condition(tmp_path):
    bundle, z = with_states(), on_sphere(draw(4))
    solved = with_skill(bundle, z)
    policy = policy_from_bundle(Bundle.load(solved.save(tmp_path / "solved")))
    assert policy.contract.condition == ()
    assert torch.equal(actions(policy, {}), actions(policy_from_bundle(bundle), {"skill": z}))
    assert len(list(rollout(policy, [PointWorld()], [0]))) == 20


def test_a_goal_policy_infers_its_skill_when_the_goal_changes(tmp_path):
    bundle = with_states()
    policy = policy_from_bundle(Bundle.load(with_goal(bundle, "position").save(tmp_path / "goal")))
    (channel,) = policy.contract.condition
    assert (channel.name, channel.names, channel.unit) == ("goal_position", ("x", "y"), "m")
    goal = bundle.arrays["states.next_observation"][4, 1:]
    assert policy.prepare({"goal_position": goal})["skill"].norm().item() == pytest.approx(2.0, abs=1e-5)
    other = bundle.arrays["states.next_observation"][9, 1:]
    assert not torch.allclose(actions(policy, {"goal_position": goal}), actions(policy, {"goal_position": other}))
    with pytest.raises(InferenceError, match="nearest carried state"):
        policy.prepare({"goal_position": [9.0, 9.0]})
    with pytest.raises(InferenceError, match="valid: clock, position"):
        with_goal(bundle, "elbow")


def test_damaged_bundles_say_what_is_wrong():
    bundle = with_states()
    with pytest.raises(BundleError, match="valid: dvfb"):
        policy_from_bundle(dataclasses.replace(bundle, method="dac"))
    without = dataclasses.replace(with_skill(bundle, torch.ones(4)), arrays=bundle.arrays)
    with pytest.raises(BundleError, match="array 'skill' none"):
        policy_from_bundle(without)
    with pytest.raises(BundleError, match=r"of shape \(3,\), valid: \(4,\)"):
        policy_from_bundle(with_skill(bundle, torch.ones(3)))
    odd = dataclasses.replace(bundle, contract=skill_contract(CONTRACT, 5))
    with pytest.raises(BundleError, match="skill of 4 numbers"):
        policy_from_bundle(odd)
    with pytest.raises(BundleError, match="does not fit"):
        policy_from_bundle(dataclasses.replace(bundle, weights={**bundle.weights, "actor.extra": torch.ones(1)}))


def test_collecting_keeps_a_skill_for_its_steps_and_begins_an_episode_with_a_new_one():
    policy = ExploringPolicy(CONTRACT, make_learner().actor, std=0.2, skill_steps=3)
    state, seen = policy.reset([5, 6]), []
    for _ in range(7):
        _, state = policy.act(observed(2), TensorDict({}, batch_size=[]), state)
        seen.append(state.tensors["skill"].clone())
    for row in range(2):
        same = [bool(torch.equal(a[row], b[row])) for a, b in zip(seen[:-1], seen[1:], strict=True)]
        assert same == [True, True, False, True, True, False]
    assert not torch.equal(seen[0][0], seen[0][1])
    torch.testing.assert_close(torch.stack(seen).norm(dim=-1), torch.full((7, 2), math.sqrt(4)))
    again = policy.reset_rows(state, [1], [6])
    _, again = policy.act(observed(2), TensorDict({}, batch_size=[]), again)
    assert torch.equal(again.tensors["skill"][1], seen[0][1])  # as at the start of the episode with this seed
    assert torch.equal(again.tensors["skill"][0], seen[-1][0])  # the other row goes on


def test_rows_of_the_collector_do_not_depend_on_each_other():
    policy = ExploringPolicy(CONTRACT, make_learner().actor, std=0.2, skill_steps=3)
    both = policy.act(observed(2), TensorDict({}, batch_size=[]), policy.reset([5, 6]))[0].values
    alone = policy.act(observed(2)[:1], TensorDict({}, batch_size=[]), policy.reset([5]))[0].values
    torch.testing.assert_close(both[:1], alone)


def test_collected_actions_stay_in_the_box_and_spread_by_the_noise():
    learner = make_learner()
    quiet, loud = (ExploringPolicy(CONTRACT, learner.actor, std=std, skill=on_sphere(draw(4))) for std in (0.0, 0.2))
    rows = 3000
    means, noisy = (p.act(observed(rows), TensorDict({}, batch_size=[]), p.reset(range(rows)))[0].values for p in (quiet, loud))
    assert torch.equal(means, actions(DVFBPolicy(CONTRACT, learner.actor, skill=on_sphere(draw(4))), {}, rows))
    assert noisy.abs().max() <= 1.0
    inside = means.abs() < 0.3
    assert (noisy - means)[inside].std().item() == pytest.approx(0.2, abs=0.02)
