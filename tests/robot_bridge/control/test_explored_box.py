"""A policy that learned in a box is kept inside of what its bundle's states explored."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from tensordict import TensorDict

from rl_core.bundle import Bundle
from rl_core.contract import RobotContract
from rl_core.dvfb.policy import with_skill
from rl_core.methods import load_policy
from rl_core.policy import ActionChunk, PolicyState, StatelessPolicy
from rl_core.training.rollout import rollout
from robot_bridge.collection import make_world
from robot_bridge.control.explored_box import ExploredBox, kept_inside
from sim_envs.arm.observation import world_contract
from tests.end_to_end.bundles import dvfb_bundle

SIDE, TURN = 0.1, 0.3


class _Pushing(StatelessPolicy):
    """Pushes the same way for ever."""

    def __init__(self, contract: RobotContract, action: np.ndarray) -> None:
        self.contract, self._action = contract, torch.tensor(action, dtype=torch.float32)

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        return ActionChunk(values=self._action.expand(obs.batch_size[0], 1, -1), period_s=self.contract.action.period_s), state


def _box(action: np.ndarray, centre: np.ndarray, mean: Rotation, side: float = SIDE, share: float = 1.0) -> ExploredBox:
    rng = np.random.default_rng(0)
    positions = centre + rng.uniform(-side, side, (5000, 3))
    orientations = (Rotation.from_rotvec(rng.uniform(-TURN, TURN, (5000, 3))) * mean).as_quat()
    return ExploredBox(_Pushing(world_contract("reach"), action), positions, orientations, share=np.full(2, share))


def _seen(position: np.ndarray, orientation: Rotation) -> TensorDict:
    values = {"eef_pos": position[None], "eef_quat": orientation.as_quat()[None]}
    return TensorDict({name: torch.tensor(value) for name, value in values.items()}, batch_size=[1])


def _acted(box: ExploredBox, position: np.ndarray, orientation: Rotation) -> np.ndarray:
    chunk, _ = box.act(_seen(position, orientation), box.prepare({}), box.reset([0]))
    return chunk.values[0, 0].double().numpy()


def test_an_action_is_cut_where_it_would_leave_the_box_and_leads_back_from_outside() -> None:
    centre, mean = np.array([0.5, 0.0, 0.2]), Rotation.from_quat([1.0, 0.0, 0.0, 0.0])
    action = np.array([1.0, -0.4, 0.2, 0.3, 0.0, -1.0, -1.0])
    box = _box(action, centre, mean)
    np.testing.assert_allclose(box.high - box.low, 2 * SIDE, rtol=0.02)
    np.testing.assert_allclose(_acted(box, centre, mean), [1, -0.4, 0.2, 0.3, 0, box.turned[0, 2] / 0.5, -1], atol=0.05)
    at_wall = np.array([box.high[0], centre[1], centre[2]])
    np.testing.assert_allclose(_acted(box, at_wall, mean)[:3], [0, -0.4, 0.2], atol=1e-6)
    outside = _acted(box, at_wall + [0.02, 0.0, 0.0], mean)
    assert outside[0] == pytest.approx(-0.4) and outside[6] == -1
    turned = Rotation.from_rotvec([0.0, 0.0, box.turned[0, 2]]) * mean
    assert abs(_acted(box, centre, turned)[5]) < 0.1
    assert _acted(box, centre, Rotation.from_rotvec([0.0, 0.0, -0.5]) * mean)[5] > 0.2  # back towards the box
    chunk, _ = box.act(TensorDict({"eef_pos": torch.zeros(1, 3), "eef_quat": torch.zeros(1, 4)}, [1]), box.prepare({}), box.reset([0]))
    assert torch.isfinite(chunk.values).all()  # what a policy is warmed up with


def test_a_hand_that_is_pushed_for_ever_stays_where_was_explored_on_the_arm() -> None:
    """Without the box it turns on and on, and goes on to the end of the arm's reach."""
    env = make_world("reach", "filtered", 60)
    start, _ = env.reset(seed=4)
    centre, mean = start["eef_pos"].astype(np.float64), Rotation.from_quat(start["eef_quat"])
    action = np.array([0.0, 0.6, 0.0, 0.0, 0.0, 1.0, 0.0])
    ends = {}
    for name, box in {"kept": _box(action, centre, mean, 0.06), "free": _Pushing(world_contract("reach"), action)}.items():
        steps = list(rollout(box, [env], [4]))
        hand = np.array([step.observation["eef_pos"] for step in steps])[:, 1] - centre[1]
        turned = [(Rotation.from_quat(step.observation["eef_quat"]) * mean.inv()).magnitude() for step in steps]
        ends[name] = hand.max(), max(turned)
    assert 0.05 < ends["kept"][0] < 0.1 and 0.25 < ends["kept"][1] < 0.45
    assert ends["free"][0] > 0.3 and ends["free"][1] > 1.0


def test_a_bundle_with_states_is_kept_inside_of_them_and_no_other(tmp_path: Path) -> None:
    bundle = Bundle.load(dvfb_bundle(tmp_path / "b"))
    policy = kept_inside(load_policy(bundle), bundle)
    assert isinstance(policy, ExploredBox) and policy.example_condition.keys() == {"goal_eef_pos"}
    seen = bundle.arrays["states.next_observation"][:, :3].numpy()
    inside = ((seen >= policy.low - 1e-6) & (seen <= policy.high + 1e-6)).mean(axis=0)
    assert (inside > 0.98).all() and (inside < 1.0).all()
    solved = with_skill(bundle, torch.ones(8))
    assert isinstance(kept_inside(load_policy(solved), solved), ExploredBox)
    bare = dataclasses.replace(solved, arrays={"skill": torch.ones(8)})
    policy = load_policy(bare)
    assert kept_inside(policy, bare) is policy


def _followed_by(bundle: Bundle, place: float, turn: float) -> Bundle:
    """The bundle with states in which the hand did these shares of every action."""
    states = {name: bundle.arrays[f"states.{name}"].double().numpy().copy() for name in ("observation", "action", "next_observation")}
    scale = np.array(load_policy(bundle).contract.action.scale)
    asked = np.random.default_rng(0).uniform(-1, 1, states["action"].shape)
    before, after = states["observation"], states["next_observation"]
    after[:, :3] = before[:, :3] + place * scale[:3] * asked[:, :3]
    after[:, 3:7] = (Rotation.from_rotvec(turn * scale[3:6] * asked[:, 3:6]) * Rotation.from_quat(before[:, 3:7])).as_quat()
    arrays = {f"states.{name}": torch.from_numpy(values).float() for name, values in {**states, "action": asked}.items()}
    return dataclasses.replace(bundle, arrays={**bundle.arrays, **arrays})


def test_of_an_action_is_asked_what_the_hand_did_of_it_where_it_explored(tmp_path: Path) -> None:
    """A command is to be reached in two periods, so it asks for twice that."""
    bundle = with_skill(Bundle.load(dvfb_bundle(tmp_path / "b", goals=False)), torch.ones(8))
    box = kept_inside(load_policy(bundle), _followed_by(bundle, 0.2, 0.1))
    assert isinstance(box, ExploredBox) and load_policy(bundle).contract.action.controller == "osc_pose"
    np.testing.assert_allclose(box.share, [0.4, 0.2], rtol=1e-4)
    assert kept_inside(load_policy(bundle), _followed_by(bundle, 0.9, 0.1)).share[0] == 1.0  # never more than the action
    whole = np.array([0.5, -1.0, 0.2, 0.1, 0.3, -0.2, 1.0])
    corners = box.low + (box.high - box.low) * [[0.0], [1.0]]
    still = ExploredBox(_Pushing(world_contract("reach"), whole), corners, Rotation.identity(2).as_quat(), share=box.share)
    still.turned[:] = [[-9.0] * 3, [9.0] * 3]
    found = _acted(still, (box.low + box.high) / 2, Rotation.identity())
    np.testing.assert_allclose(found, [0.2, -0.4, 0.08, 0.02, 0.06, -0.04, 1.0], atol=1e-6)


def test_the_filter_takes_the_largest_turns_only_in_shares_of_them() -> None:
    """Whole ones ask a joint to go further at once than it lets, and an arm that is refused the same step again and again stands still."""
    env = make_world("reach", "filtered", 40)
    start, _ = env.reset(seed=4)
    centre, mean = start["eef_pos"].astype(np.float64), Rotation.from_quat(start["eef_quat"])
    refused = {}
    for name, share in {"whole": 1.0, "shares": 0.2}.items():
        box = _box(np.array([1.0, -1.0, -1.0, -0.8, -1.0, -0.9, 0.0]), centre, mean, share=share)
        box.turned = np.array([[-1.0] * 3, [1.0] * 3])
        refused[name] = sum(bool(step.info["refusal"]) for step in rollout(box, [env], [4]))
    assert refused["whole"] > 20 and refused["shares"] == 0


def test_a_goal_becomes_a_skill_in_milliseconds_and_another_goal_another_one(tmp_path: Path) -> None:
    bundle = Bundle.load(dvfb_bundle(tmp_path / "b"))
    states = {name: value.repeat(25, 1) for name, value in bundle.arrays.items()}  # 10 000, as many as are carried by default
    policy = load_policy(dataclasses.replace(bundle, arrays=states))
    places = bundle.arrays["states.next_observation"][[3, 200], :3]
    skills = [policy.prepare({"goal_eef_pos": place})["skill"] for place in places]
    assert not torch.allclose(*skills)
    seconds = []
    for _ in range(11):
        started = time.perf_counter()
        policy.prepare({"goal_eef_pos": places[0]})
        seconds.append(time.perf_counter() - started)
    assert np.median(seconds) < 0.05
