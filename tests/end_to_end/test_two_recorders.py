"""Two recorders of one run, each a process of its own: the bag and the HDF5 files hold the same episodes, those the policy acted in."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import String

from rl_core.data.episode import Dataset, Episode
from rl_core.data.formats import read_dataset
from rl_core.data.formats.mcap import McapFormat
from robot_bridge.control.filtered_env import FilteredEnv
from robot_bridge.nodes.arm_node import ArmNode
from robot_bridge.nodes.json_requests import JsonClient
from robot_bridge.nodes.policy_node import PolicyNode
from robot_bridge.nodes.qos import EVENTS
from robot_bridge.nodes.spin import SpinThread
from sim_envs.arm.observation import world_contract
from tests.end_to_end.policies import RandomWalk, RecordingPolicy
from tests.ros_graph import Graph

RECORDED = (
    *("joint_states", "ee_pose", "objects/cube/pose", "policy/action", "episode", "arm/contract", "arm/status"),
    *("arm/target", "arm/target_pose", "sim/reward"),
)
RECORDERS = {"recorder", "episode_recorder"}
SEEDS = (7, 8, 9)
STEPS = 25


def _await(condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def _heard_by(sender: Node, topic: str) -> set[str]:
    """Nodes of which `sender` itself knows that they listen; what was sent before that is lost to them."""
    return {info.node_name for info in sender.get_subscriptions_info_by_topic(sender.resolve_topic_name(topic))}


def _play(graph: Graph, policy: RecordingPolicy) -> None:
    parameters = {"sim_mode": "lockstep", "episodes": "on_request", "horizon": STEPS}
    arm = ArmNode(parameter_overrides=[Parameter(name, value=value) for name, value in parameters.items()])
    runner = PolicyNode(policy=policy)
    heard = graph.collect(String, "episode", EVENTS)
    client = JsonClient(graph.probe, "episode")
    with SpinThread(arm, failure=arm.failure), SpinThread(runner, failure=runner.failure):
        for topic in RECORDED:
            sender = runner if topic == "policy/action" else arm
            _await(lambda s=sender, t=topic: RECORDERS <= _heard_by(s, t), f"{topic} is not recorded by both")  # type: ignore[misc]
        for seed in SEEDS:
            index = client.call({"op": "reset", "seed": seed}, timeout_s=20)["index"]

            def over(message: String, index: int = index) -> bool:
                runner.failure.raise_reported()
                episode = json.loads(message.data)
                return bool(episode["index"] == index and episode["phase"] == "over")

            heard.wait(over, timeout_s=20)
        diagnostics = graph.collect(DiagnosticArray, "diagnostics")
        diagnostics.wait(lambda m: any(p.key == "episodes" and p.value == str(len(SEEDS)) for p in m.status[0].values), timeout_s=20)
    runner.close()
    arm.close()
    runner.destroy_node()
    arm.destroy_node()


def _assert_equal(one: Episode, other: Episode) -> None:
    assert sorted(one.observations) == sorted(other.observations)
    for name, values in one.observations.items():
        assert values.dtype == other.observations[name].dtype
        np.testing.assert_array_equal(values, other.observations[name], err_msg=name)
    for name in ("actions", "action_applied", "rewards", "stamps_ns"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.observation_age_ns.keys() == other.observation_age_ns.keys()
    for name, ages in one.observation_age_ns.items():
        np.testing.assert_array_equal(ages, other.observation_age_ns[name], err_msg=name)
    assert (one.uuid, one.terminal, one.truncated, one.success) == (other.uuid, other.terminal, other.truncated, other.success)


def _assert_nothing_missing(dataset: Dataset) -> None:
    for episode in dataset.episodes:
        assert set(episode.meta["gaps"]) >= {f"/{topic}" for topic in RECORDED} - {"/arm/contract"}
        assert sum(n["lost"] + n["dropped"] for n in episode.meta["gaps"].values()) == 0
        assert not episode.meta["stale"] and not episode.meta["steps_dropped"]
        assert all((ages == 0).all() for ages in episode.observation_age_ns.values())


def _assert_applied_and_rewards_are_those_of_the_world(bag: Dataset) -> None:
    """The same actions in-process, through the same filter, in each episode in which the policy was asked in every step."""
    whole = [(seed, episode) for seed, episode in zip(SEEDS, bag.episodes, strict=True) if len(episode) == STEPS]
    assert whole
    env = FilteredEnv("lift", horizon=STEPS)
    for seed, episode in whole:
        env.reset(seed=seed)
        steps = [env.step(action) for action in episode.actions]
        assert episode.action_applied is not None
        applied = np.stack([info["action_applied"] for *_, info in steps])
        # in-process, what was let through as it was asked for is copied; here it is as near as the inverse kinematics came (1 mm, 10 mrad)
        np.testing.assert_allclose(episode.action_applied, applied, atol=0.02)
        assert np.quantile(np.abs(episode.action_applied - applied), 0.9) < 2e-3 < np.abs(applied - episode.actions).max()
        np.testing.assert_array_equal(episode.rewards, np.float32([reward for _, reward, *_ in steps]))
    env.close()


def test_bag_and_dataset_of_one_run_hold_equal_episodes_and_what_the_policy_saw_and_did(graph: Graph, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    bag_recorder = graph.process("robot_bridge.nodes.recorder_node", "--ros-args", "-p", f"folder:={tmp_path / 'bag'}")
    recorder = graph.process("robot_bridge.nodes.episode_recorder_node", "--ros-args", "-p", f"folder:={tmp_path / 'dataset'}")
    policy = RecordingPolicy(RandomWalk(world_contract("lift")))
    _play(graph, policy)
    assert bag_recorder.end() == 0
    assert recorder.end() == 0

    bag, dataset = McapFormat().read(tmp_path / "bag"), read_dataset(tmp_path / "dataset")
    _assert_nothing_missing(bag)
    _assert_nothing_missing(dataset)
    assert bag.contract == dataset.contract == world_contract("lift")
    assert len(bag) == len(dataset) == len(SEEDS)
    for one, other, seed in zip(bag.episodes, dataset.episodes, SEEDS, strict=True):
        _assert_equal(one, other)
        assert one.meta["seed"] == seed and one.meta["steps"] == STEPS and one.meta["task"] == "lift"
        assert one.truncated and not one.terminal and one.success is False
        assert one.rewards.sum() == pytest.approx(one.meta["return"]) and (one.rewards > 0).all()

    # to the bit what the policy saw and did, step by step: a step in which it was not asked is none
    steps = sum(len(episode) for episode in bag.episodes)
    assert len(policy.actions) == steps > 0.9 * len(SEEDS) * STEPS
    np.testing.assert_array_equal(np.concatenate([e.actions for e in bag.episodes]), np.concatenate(policy.actions)[:, 0])
    for name in bag.episodes[0].observations:
        seen = np.concatenate([observation[name] for observation in policy.observations])
        np.testing.assert_array_equal(np.concatenate([e.observations[name][:-1] for e in bag.episodes]), seen, err_msg=name)
    _assert_applied_and_rewards_are_those_of_the_world(bag)
    assert np.ptp(np.concatenate([e.observations["eef_pos"] for e in bag.episodes]), axis=0).max() > 0.03  # the arm did move
