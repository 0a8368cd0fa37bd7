"""The same seeds in-process and over ROS in lockstep: equal observations, actions and success, episode by episode."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from geometry_msgs.msg import PoseStamped
from rclpy.parameter import Parameter
from std_msgs.msg import String

from rl_core.bundle import Bundle
from rl_core.dac.config import DACConfig
from rl_core.methods import load_policy
from rl_core.policy import Policy
from rl_core.strap.config import BCTransformerConfig
from rl_core.training.rollout import rollout
from robot_bridge.collection import make_world
from robot_bridge.control.explored_box import kept_inside
from robot_bridge.control.filtered_env import FilteredEnv
from robot_bridge.control.hand_policy import fitted
from robot_bridge.nodes.arm_node import ArmNode
from robot_bridge.nodes.json_requests import JsonClient
from robot_bridge.nodes.messages import pose, pose_arrays
from robot_bridge.nodes.policy_node import PolicyNode
from robot_bridge.nodes.qos import EVENTS, STREAM, advertise
from robot_bridge.nodes.spin import SpinThread
from robot_bridge.nodes.stamps import to_ns
from sim_envs.arm.observation import world_contract
from tests.end_to_end.bundles import dvfb_bundle, pear_bundle, seen_places
from tests.end_to_end.policies import RandomWalk, RecordingPolicy, small_bundle
from tests.ros_graph import Graph

TOLERANCE = 1e-9


def _in_process(
    policy: Policy, seeds: list[int], horizon: int, *, task: str = "lift", condition: dict[str, Any] | None = None
) -> tuple[RecordingPolicy, list[dict[str, Any]]]:
    recording = RecordingPolicy(policy)
    env = make_world(task, "filtered", horizon)
    assert isinstance(env, FilteredEnv)
    episodes: dict[int, dict[str, Any]] = {seed: {"success": False, "return": 0.0, "steps": 0} for seed in seeds}
    for step in rollout(recording, [env], seeds, condition=condition):
        row = episodes[step.seed]
        row["success"] = bool(row["success"] or step.info["success"])
        row["return"] += step.reward
        row["steps"] += 1
    return recording, list(episodes.values())


def _over_ros(
    graph: Graph, policy: Policy, seeds: list[int], horizon: int, *, task: str = "lift", goal: PoseStamped | None = None, topic: str = ""
) -> tuple[RecordingPolicy, list[dict[str, Any]]]:
    recording = RecordingPolicy(policy)
    parameters = {"sim_mode": "lockstep", "episodes": "on_request", "horizon": horizon, "task": task}
    overrides = [Parameter(name, value=value) for name, value in parameters.items()]
    arm = ArmNode(parameter_overrides=overrides)
    runner = PolicyNode(policy=recording)
    heard = graph.collect(String, "episode", EVENTS)
    client = JsonClient(graph.probe, "episode")
    goals = advertise(graph.probe, PoseStamped, "goal_pose", STREAM)
    rows = []
    with SpinThread(arm, failure=arm.failure), SpinThread(runner, failure=runner.failure):
        if topic:  # whoever publishes on it and whoever collects it know each other
            _await(lambda: graph.probe.count_publishers(topic) > 0 and runner.count_subscribers(topic) > 0)
        for seed in seeds:
            answer = client.call({"op": "reset", "seed": seed}, timeout_s=20)
            if goal is not None and not rows:  # until it is heard, time stands still
                _await(lambda: goals.get_subscription_count() > 0)
                goals.publish(goal)

            def over(message: String, index: int = answer["index"]) -> bool:
                runner.failure.raise_reported()
                episode = json.loads(message.data)
                return bool(episode["index"] == index and episode["phase"] == "over")

            rows.append(json.loads(heard.wait(over, timeout_s=60).data))
    runner.close()
    arm.close()
    runner.destroy_node()
    arm.destroy_node()
    return recording, rows


def _await(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _assert_equal(ours: tuple[RecordingPolicy, list[dict[str, Any]]], theirs: tuple[RecordingPolicy, list[dict[str, Any]]]) -> None:
    (here, here_rows), (there, there_rows) = ours, theirs
    assert len(here.actions) == len(there.actions) > 0
    for step, (a, b) in enumerate(zip(here.observations, there.observations, strict=True)):
        assert sorted(a) == sorted(b)
        for channel in a:
            assert np.abs(a[channel].astype(np.float64) - b[channel]).max() <= TOLERANCE, (step, channel)
    for step, (said, other_said) in enumerate(zip(here.info, there.info, strict=True)):
        assert sorted(said) == sorted(other_said)
        for name in said:
            assert np.abs(said[name].astype(np.float64) - other_said[name]).max() <= TOLERANCE, (step, name)
    for step, (action, other) in enumerate(zip(here.actions, there.actions, strict=True)):
        assert np.abs(action.astype(np.float64) - other).max() <= TOLERANCE, step
    keys = ("success", "return", "steps")
    assert [[row[key] for key in keys] for row in here_rows] == [[row[key] for key in keys] for row in there_rows]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def test_lockstep_over_ros_equals_in_process_to_1e_9(graph: Graph) -> None:
    """Wild actions: some are refused, some ask for poses out of reach; both paths must do the same about it."""
    policy = RandomWalk(world_contract("lift"))
    seeds = [1_000_000, 1_000_001, 1_000_002]
    in_process = _in_process(policy, seeds, horizon=30)
    _assert_equal(in_process, _over_ros(graph, policy, seeds, horizon=30))
    travelled = np.ptp(np.concatenate([o["eef_pos"] for o in in_process[0].observations]), axis=0)
    assert travelled.max() > 0.05  # the arm did move


def test_lockstep_over_ros_equals_in_process_for_chunks(graph: Graph) -> None:
    policy = RandomWalk(world_contract("lift"), horizon=4, size=0.2)
    seeds = [1_000_000, 1_000_001]
    _assert_equal(_in_process(policy, seeds, horizon=30), _over_ros(graph, policy, seeds, horizon=30))


@pytest.mark.parametrize(
    ("method", "config"),
    [
        ("bc", {"hidden": (32, 32), "head": "gmm"}),
        ("dac", DACConfig.PRESETS["cpu"]),
        ("strap", BCTransformerConfig.PRESETS["cpu"]),
    ],
)
def test_lockstep_over_ros_equals_in_process_for_a_bundle(graph: Graph, tmp_path: Path, method: str, config: dict[str, Any]) -> None:
    """All draw from the row's generator: their random numbers must be the same too. STRAP's needs a history."""
    bundle = small_bundle(tmp_path / "bundle", method=method, **config)
    policy = functools.partial(load_policy, bundle)
    seeds = [1_000_000, 1_000_001]
    _assert_equal(_in_process(policy(), seeds, horizon=20), _over_ros(graph, policy(), seeds, horizon=20))


def test_lockstep_over_ros_equals_in_process_for_both_levels_of_pear(graph: Graph, tmp_path: Path) -> None:
    """Actions and subgoals; what is published is the hand's part of each subgoal, at the time of the observation it was chosen for."""
    bundle = pear_bundle(tmp_path / "bundle", gain=2.0)
    offered = (world_contract("goal_pick"),)
    seeds = [1_000_000, 1_000_001]
    told = graph.collect(PoseStamped, "policy/subgoal")
    there = _over_ros(graph, fitted(load_policy(bundle), offered), seeds, horizon=30, task="goal_pick", topic="policy/subgoal")
    _assert_equal(_in_process(fitted(load_policy(bundle), offered), seeds, horizon=30, task="goal_pick"), there)
    said = [info["subgoal"][0] for info in there[0].info]
    assert [int(info["age"][0]) for info in there[0].info] == [step % 7 for _ in seeds for step in range(15)]
    assert all(np.array_equal(said[i], said[i - 1]) == (i % 15 % 7 > 0) for i in range(1, 30))
    told.wait(after=len(said) - 1)
    assert np.array([pose_arrays(message)[0] for message in told.messages]) == pytest.approx(np.array(said)[:, :3])
    assert {message.header.frame_id for message in told.messages} == {"base"}
    between = np.diff([to_ns(message.header.stamp) for message in told.messages])
    assert set(np.delete(between, 14)) == {100_000_000}  # two of the arm's periods
    travelled = np.ptp(np.concatenate([o["eef_pos"] for o in there[0].observations]), axis=0)
    assert travelled.max() > 0.03


def test_lockstep_over_ros_equals_in_process_for_a_goal_that_is_told(graph: Graph, tmp_path: Path) -> None:
    """DVFB: z is inferred from the states in the bundle when the goal is heard, and each action is cut at what they explored."""
    bundle = Bundle.load(dvfb_bundle(tmp_path / "bundle"))
    position = seen_places(tmp_path / "bundle")[77]
    goal = pose(position, np.array([0.0, 0.0, 0.0, 1.0]), frame="base", stamp_ns=0)
    seeds = [1_000_000, 1_000_001]
    here = _in_process(_skilled(bundle), seeds, horizon=20, task="reach", condition={"goal_eef_pos": position})
    _assert_equal(here, _over_ros(graph, _skilled(bundle), seeds, horizon=20, task="reach", goal=goal))
    travelled = np.ptp(np.concatenate([o["eef_pos"] for o in here[0].observations]), axis=0)
    assert travelled.max() > 0.03


def _skilled(bundle: Bundle) -> Policy:
    return kept_inside(load_policy(bundle), bundle)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_lockstep_over_ros_equals_in_process_on_fifty_seeds(graph: Graph) -> None:
    """Tamer actions: after a fault, which wild ones cause by hitting the table, the policy node waits for somebody to start it."""
    policy = RandomWalk(world_contract("lift"), size=0.2)
    seeds = list(range(1_000_000, 1_000_050))
    _assert_equal(_in_process(policy, seeds, horizon=150), _over_ros(graph, policy, seeds, horizon=150))
