"""The world behind the same path as over ROS."""

from __future__ import annotations

import dataclasses

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from tensordict import TensorDict

from robot_bridge.arms.simulated import SimulatedArm
from robot_bridge.control.decode import ActionDecoder
from robot_bridge.control.filter import CommandFilter
from robot_bridge.control.filtered_env import FilteredEnv
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.control.loop import ControlLoop
from robot_bridge.control.observe import ObservationAssembler
from robot_bridge.control.runner import PolicyRunner
from robot_bridge.control.settings import FilterSettings
from sim_envs.arm.observation import observation
from sim_envs.arm.world import ArmWorld, FaultyAction
from sim_envs.experts import make_expert
from tests.robot_bridge.control.toy_policies import NoisyReach

torch.set_num_threads(1)


@pytest.mark.parametrize("name", ("Reach", "Lift", "PickPlace"))
def test_registered_worlds_pass_gymnasiums_checker(name: str) -> None:
    env = gymnasium.make(f"robot_bridge:armstack/{name}Filtered-v0", horizon=30)
    check_env(env.unwrapped, skip_render_check=True)
    assert env.get_wrapper_attr("contract").action.names[-1] == "gripper"
    env.close()


def rollout(env: FilteredEnv, seed: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    obs, _ = env.reset(seed=seed)
    rows, applied = [np.concatenate(list(obs.values()))], []
    for _ in range(steps):
        obs, _, _, _, info = env.step(rng.uniform(-0.4, 0.4, env.action_space.shape))
        rows.append(np.concatenate(list(obs.values())))
        applied.append(info["action_applied"])
    return np.array(rows), np.array(applied)


def test_rollouts_are_equal_to_the_bit_whatever_came_before() -> None:
    env = FilteredEnv()
    first = rollout(env, 7, 40)
    rollout(env, 8, 13)
    for again in (rollout(env, 7, 40), rollout(FilteredEnv(), 7, 40)):
        assert (first[0] == again[0]).all() and (first[1] == again[1]).all()


@pytest.mark.parametrize("execute", (1, 4))
def test_a_runner_on_the_loop_gives_the_environments_observations_and_actions(execute: int) -> None:
    """What a policy node and an arm node do in lockstep, done by hand, against the environment: equal step by step."""
    env = FilteredEnv(horizon=40)
    action = dataclasses.replace(env.contract.action, horizon=execute, execute=execute)
    contract = dataclasses.replace(env.contract, action=action)
    policy = NoisyReach(contract, execute, execute)

    state = policy.reset([5])
    obs, _ = env.reset(seed=11)
    expected, chunk = [np.concatenate(list(obs.values()))], []
    for _ in range(40):
        if not chunk:
            row = TensorDict({name: torch.from_numpy(value)[None] for name, value in obs.items()}, batch_size=[1])
            acted, state = policy.act(row, TensorDict({}, batch_size=[]), state)
            chunk = list(acted.values[0])
        obs, *_, info = env.step(chunk.pop(0).double().numpy())
        assert not info["refusal"]
        expected.append(np.concatenate(list(obs.values())))

    world = ArmWorld("lift")
    arm = SimulatedArm(world)
    kinematics = Kinematics(world.kinematics_xml())
    command_filter = CommandFilter(arm.limits, FilterSettings(), forward=Kinematics(world.kinematics_xml()).fk)
    loop = ControlLoop(arm=arm, filter=command_filter, clock=arm.clock)
    runner = PolicyRunner(policy, ActionDecoder(action, kinematics), sender="node")
    world.reset(11)
    runner.reset(5)
    loop.restart()
    assert loop.take("policy", "node") is None
    assembler = ObservationAssembler(contract)
    for step in range(41):
        measured = arm.read()
        for name, value in observation(world.state(), "lift").items():
            assembler.put(name, value, measured.stamp_ns)
        assert assembler.ready(arm.clock.source_ns())
        row, stamp_ns = assembler.assemble()
        got = np.concatenate([row[channel.name][0].numpy() for channel in contract.observation])
        assert (got == expected[step]).all(), step
        status = loop.status()
        command = runner.step(row, stamp_ns, measured, accepts=status.accepts, moving=step == 0 or status.state == "moving")
        refusal, _ = loop.lockstep_step(command)
        assert refusal is None, refusal


def test_an_expert_lifts_the_cube_through_the_filter_and_its_actions_are_applied() -> None:
    env = FilteredEnv(horizon=150)
    obs, _ = env.reset(seed=1)
    expert = make_expert("lift", "expert", 1)
    expert.reset(1)
    success, altered = False, 0
    for _ in range(150):
        action = expert.act(obs)
        obs, _, _, truncated, info = env.step(action)
        success |= info["success"]
        altered += np.abs(info["action_applied"] - np.clip(action, -1, 1)).max() > 0.01
        assert not info["refusal"]
    assert success and truncated
    assert altered < 15  # the ramp of the start


def test_action_applied_is_the_action_where_nothing_was_cut_and_less_where_it_was() -> None:
    env = FilteredEnv()
    env.reset(seed=2)
    small = np.array([0.1, 0.05, 0.1, 0.0, 0.0, 0.02, -1.0])
    for _ in range(6):
        *_, info = env.step(small)
    assert info["action_applied"] == pytest.approx(small, abs=1e-7)
    env.loop.speed(0.05, "separation")
    *_, info = env.step(np.array([0.5, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0]))
    assert 0.0 < info["action_applied"][0] < 0.3
    assert env.loop.filter.counts["speed_scale"] > 0


def test_a_held_arm_applies_nothing_and_says_why() -> None:
    env = FilteredEnv()
    env.reset(seed=2)
    env.loop.e_stop(True, "button")
    *_, info = env.step(np.array([0.5, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0]))
    assert "stopped" in info["refusal"] and np.abs(info["action_applied"][:6]).max() < 1e-3


def test_a_pose_out_of_reach_holds_and_is_no_error() -> None:
    env = FilteredEnv(horizon=200)
    env.reset(seed=2)
    outwards = np.array([1.0, 0.0, 0.3, 0.0, 0.0, 0.0, -1.0])
    for _ in range(35):
        *_, info = env.step(outwards)
    assert "out of reach" in info["refusal"] and env.loop.status().state == "holding"
    stood = env.world.state().eef_pos
    *_, info = env.step(outwards)
    assert np.linalg.norm(env.world.state().eef_pos - stood) < 1e-3
    assert np.abs(info["action_applied"][:6]).max() < 0.05
    for _ in range(10):
        *_, info = env.step(np.array([-0.3, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0]))
    assert not info["refusal"] and env.world.state().eef_pos[0] < stood[0] - 0.02


def test_nan_into_the_simulator_is_not_swallowed() -> None:
    env = FilteredEnv()
    env.reset(seed=0)
    with pytest.raises(FaultyAction, match="finite"):
        env.step(np.full(7, np.nan))
    with pytest.raises(gymnasium.error.ResetNeeded, match="invalid"):
        env.step(np.zeros(7))
    env.reset(seed=0)
    env.step(np.zeros(7))


def test_resting_actions_leave_the_arm_where_it_is() -> None:
    env = FilteredEnv()
    env.reset(seed=4)
    start = env.world.state().eef_pos
    for _ in range(60):
        env.step(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0]))
    assert np.linalg.norm(env.world.state().eef_pos - start) < 1e-3


def test_joint_delta_actions_move_joints() -> None:
    env = FilteredEnv(action="joint_delta")
    env.reset(seed=4)
    before = env.world.state().joint_pos
    for _ in range(20):
        *_, info = env.step(np.array([0.3, 0, 0, 0, 0, 0, 0.2, 1.0]))
        assert not info["refusal"]
    moved = env.world.state().joint_pos - before
    assert moved[0] > 0.1 and moved[6] > 0.05 and np.abs(moved[1:6]).max() < 0.01
