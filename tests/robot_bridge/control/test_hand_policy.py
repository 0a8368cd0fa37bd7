"""A policy of the goal worlds on an arm that is told how to turn its hand, twice as often."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from rl_core.contract import ContractMismatch, RobotContract
from rl_core.methods import load_policy
from rl_core.policy import ActionChunk, PolicyState, StatelessPolicy
from rl_core.training.rollout import rollout
from robot_bridge.arms.base import ArmState
from robot_bridge.collection import make_world
from robot_bridge.control.decode import ActionDecoder
from robot_bridge.control.hand_policy import HandPolicy, fitted, rotation_down
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.control.runner import PolicyRunner
from sim_envs.arm.goal_worlds import ArmGoalWorlds
from sim_envs.arm.observation import world_contract
from sim_envs.arm.tasks.goal_tasks import GOAL_TASKS, GoalTask
from sim_envs.arm.world import ArmWorld
from sim_envs.experts.goal_carry import GoalCarry
from sim_envs.experts.motion import pointing_down, rotation_between
from sim_envs.experts.skill import Skill
from tests.end_to_end.bundles import pear_bundle

OFFERED = (world_contract("goal_pick"), world_contract("goal_pick", "joint_delta"))


class _Asked(StatelessPolicy):
    """Always says the same, and keeps what it saw."""

    def __init__(self, contract: RobotContract, action: Any) -> None:
        self.contract, self._action = contract, torch.tensor(action, dtype=torch.float32)
        self.seen: list[dict[str, torch.Tensor]] = []

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        self.seen.append({str(name): value for name, value in obs.items()})
        values = self._action.expand(len(state.generators), 1, -1)
        return ActionChunk(values=values, period_s=self.contract.action.period_s, info={"subgoal": values[:, 0]}), state


@pytest.fixture(scope="module")
def contract() -> RobotContract:
    worlds = ArmGoalWorlds(1)
    worlds.close()
    return worlds.contract


def _observed(contract: RobotContract, rows: int) -> TensorDict:
    rng = np.random.default_rng(0)
    values = {channel.name: torch.tensor(rng.normal(size=(rows, channel.size)), dtype=torch.float32) for channel in contract.observation}
    values["eef_quat"] = torch.nn.functional.normalize(values["eef_quat"], dim=-1)
    return TensorDict(values, batch_size=[rows])


def test_a_policy_that_turns_its_hand_itself_is_left_alone() -> None:
    policy = _Asked(world_contract("lift"), np.zeros(7))
    assert fitted(policy, OFFERED) is policy
    joints = _Asked(world_contract("lift", "joint_delta"), np.zeros(8))
    assert fitted(joints, OFFERED) is joints


def test_each_action_is_two_of_the_arms_and_the_goal_is_a_channel_for_each_body(contract: RobotContract) -> None:
    policy = fitted(_Asked(contract, [0.5, -0.25, 1.0, -1.0]), OFFERED)
    assert isinstance(policy, HandPolicy)
    policy.contract.accepts(OFFERED[0])
    names = [channel.name for channel in policy.contract.observation]
    assert names == ["eef_pos", "gripper_pos", "block_pos", "gripper_to_block_pos", "goal_eef_pos", "goal_block_pos", "eef_quat"]
    obs = _observed(policy.contract, 3)
    chunk, _ = policy.act(obs, policy.prepare({}), policy.reset([0, 1, 2]))
    assert chunk.values.shape == (3, 2, 7) and chunk.execute == 2 and chunk.period_s == 0.05
    torch.testing.assert_close(chunk.values[..., [0, 1, 2, 6]], torch.tensor([1 / 3, -1 / 6, 2 / 3, -1.0]).expand(3, 2, 4))
    down = [rotation_between(row, pointing_down(0.0)) / 0.5 for row in obs["eef_quat"].double().numpy()]
    torch.testing.assert_close(chunk.values[:, 0, 3:6], torch.tensor(np.clip(down, -1, 1), dtype=torch.float32))
    torch.testing.assert_close(chunk.values[:, 1, 3:6], chunk.values[:, 0, 3:6] / 2)
    (seen,) = policy._policy.seen
    torch.testing.assert_close(seen["desired_goal"], torch.cat([obs["goal_eef_pos"], obs["goal_block_pos"]], -1))
    assert {channel.name for channel in contract.observation} <= seen.keys()
    assert torch.equal(chunk.info["subgoal"], torch.tensor([0.5, -0.25, 1.0, -1.0]).expand(3, 4))


def test_arms_that_cannot_do_it_are_refused_with_both_sides(contract: RobotContract) -> None:
    policy = _Asked(contract, np.zeros(4))
    with pytest.raises(ContractMismatch, match="action: needs .*offered"):
        fitted(policy, (OFFERED[1],))
    slower = dataclasses.replace(OFFERED[0], action=dataclasses.replace(OFFERED[0].action, period_s=0.07))
    with pytest.raises(ContractMismatch, match="a whole share of 0.1 s"):
        fitted(policy, (slower,))
    other = dataclasses.replace(OFFERED[0], action=dataclasses.replace(OFFERED[0].action, scale=(0.02,) * 3 + (0.5,) * 3 + (1.0,)))
    with pytest.raises(ContractMismatch, match="action.scale"):
        fitted(policy, (other,)).contract.accepts(other)
    with pytest.raises(ContractMismatch, match="goal_block_pos: needed"):
        fitted(policy, OFFERED).contract.accepts(world_contract("lift"))
    heading = dataclasses.replace(contract.observation[-1], names=("eef_x", "eef_y", "eef_yaw"), shape=())
    with pytest.raises(ContractMismatch, match="BODY_x, BODY_y, BODY_z"):
        fitted(_Asked(dataclasses.replace(contract, observation=(*contract.observation[:-1], heading)), np.zeros(4)), OFFERED)


def test_any_orientation_is_turned_down_the_shorter_way() -> None:
    quaternions = np.random.default_rng(1).normal(size=(50, 4))
    quaternions = np.concatenate([quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True), pointing_down(0.0)[None]])
    expected = np.array([rotation_between(row, pointing_down(0.0)) for row in quaternions])
    np.testing.assert_allclose(rotation_down(torch.from_numpy(quaternions)).numpy(), expected, atol=1e-12)
    assert not rotation_down(torch.zeros(1, 4)).any()  # what a policy is warmed up with


@pytest.mark.parametrize("task", sorted(GOAL_TASKS))
def test_the_position_controlled_arm_shows_the_goal_worlds_numbers_and_moves_much_alike(task: str) -> None:
    worlds, action = ArmGoalWorlds(1, task), [0.0, 0.5, 0.0, -1.0]
    seen = worlds.reset([5])
    env = make_world(task, "filtered", 16)
    asked = _Asked(worlds.contract, action)
    steps = list(rollout(fitted(asked, (world_contract(task),)), [env], [5]))
    first = np.concatenate([asked.seen[0][channel.name][0].numpy() for channel in worlds.contract.observation])
    np.testing.assert_allclose(first, np.concatenate([seen["observation"][0], seen["desired_goal"][0]]), atol=1e-6)
    for _ in range(8):
        after = worlds.step(np.array([action], np.float32))
    worlds.close()
    here, there = steps[-1].observation["eef_pos"] - first[:3], after["observation"][0, :3] - seen["observation"][0, :3]
    assert 0.05 < there[1] and here[1] == pytest.approx(there[1], rel=0.25)
    turned = rotation_between(steps[-1].observation["eef_quat"].astype(np.float64), pointing_down(0.0))
    assert (
        np.linalg.norm(turned) < 0.02 < np.linalg.norm(rotation_between(steps[0].before["eef_quat"].astype(np.float64), pointing_down(0.0)))
    )


class _Demonstrator(StatelessPolicy):
    """The goal worlds' scripted demonstrator, in their four numbers."""

    def __init__(self, contract: RobotContract, task: GoalTask, seed: int) -> None:
        turned = world_contract(task.name).select(["joint_pos", "joint_vel", f"{task.thing}_quat", "goal_pos"]).observation
        self.contract = dataclasses.replace(contract, observation=(*turned, *contract.observation))
        self._expert = GoalCarry(task, Skill(speed=0.5, noise=0.0, aim=0.001, tolerance=task.precision))
        self._expert.reset(seed)

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        action = self._expert.act({str(name): value[0].double().numpy() for name, value in obs.items()})
        return ActionChunk(values=torch.tensor(action[[0, 1, 2, 6]], dtype=torch.float32)[None, None], period_s=0.1), state


@pytest.mark.parametrize("task", ["goal_pick", "goal_bin"])
def test_what_is_done_in_the_goal_worlds_is_done_by_the_position_controlled_arm(task: str, contract: RobotContract) -> None:
    """Displacements that are not made smaller bring the hand past where it shall be: 1 of 8 and none arrived."""
    env = make_world(task, "filtered", GOAL_TASKS[task].horizon)
    seeds = [0, 1]
    last = [list(rollout(fitted(_Demonstrator(contract, GOAL_TASKS[task], seed), OFFERED), [env], [seed]))[-1] for seed in seeds]
    assert [step.info["success"] for step in last] == [True] * len(seeds)


def test_while_the_arm_accepts_nothing_the_subgoal_does_not_age(tmp_path: Path) -> None:
    policy = fitted(load_policy(pear_bundle(tmp_path / "bundle")), OFFERED)
    kinematics = Kinematics(ArmWorld.kinematics_xml())
    home = np.array([0.0, 0.2, 0.0, -2.5, 0.0, 2.8, 0.7, 0.04])
    position, quaternion = kinematics.fk(home[:7])
    names = (*kinematics.joint_names, "gripper")
    state = ArmState(stamp_ns=0, names=names, positions=home, velocities=np.zeros(8), ee_pos=position, ee_quat=quaternion)
    runner = PolicyRunner(policy, ActionDecoder(policy.contract.action, kinematics), sender="a")
    ages, subgoals = [], []
    for period in range(40):
        held = 5 <= period < 25  # in the middle of an action
        command = runner.step(_observed(policy.contract, 1), period, state, accepts=not held)
        assert (command is None) == held and not (held and runner.inferred)
        if runner.inferred:
            ages.append(int(runner.info["age"][0]))
            subgoals.append(runner.info["subgoal"][0])
            assert command is not None and command.stamp_ns == period  # from a fresh observation
    assert ages == [step % 7 for step in range(11)]
    assert all(torch.equal(subgoals[2], subgoal) for subgoal in subgoals[3:7])
