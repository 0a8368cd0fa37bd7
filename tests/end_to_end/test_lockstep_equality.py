"""The same seeds in-process and over ROS in lockstep: equal observations, actions and success, episode by episode."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rclpy.parameter import Parameter
from std_msgs.msg import String

from rl_core.dac.config import DACConfig
from rl_core.methods import load_policy
from rl_core.policy import Policy
from rl_core.strap.config import BCTransformerConfig
from rl_core.training.rollout import rollout
from robot_bridge.collection import make_world
from robot_bridge.control.filtered_env import FilteredEnv
from robot_bridge.nodes.arm_node import ArmNode
from robot_bridge.nodes.json_requests import JsonClient
from robot_bridge.nodes.policy_node import PolicyNode
from robot_bridge.nodes.qos import EVENTS
from robot_bridge.nodes.spin import SpinThread
from sim_envs.arm.observation import world_contract
from tests.end_to_end.policies import RandomWalk, RecordingPolicy, small_bundle
from tests.ros_graph import Graph

TOLERANCE = 1e-9


def _in_process(policy: Policy, seeds: list[int], horizon: int) -> tuple[RecordingPolicy, list[dict[str, Any]]]:
    recording = RecordingPolicy(policy)
    env = make_world("lift", "filtered", horizon)
    assert isinstance(env, FilteredEnv)
    episodes: dict[int, dict[str, Any]] = {seed: {"success": False, "return": 0.0, "steps": 0} for seed in seeds}
    for step in rollout(recording, [env], seeds):
        row = episodes[step.seed]
        row["success"] = bool(row["success"] or step.info["success"])
        row["return"] += step.reward
        row["steps"] += 1
    return recording, list(episodes.values())


def _over_ros(graph: Graph, policy: Policy, seeds: list[int], horizon: int) -> tuple[RecordingPolicy, list[dict[str, Any]]]:
    recording = RecordingPolicy(policy)
    parameters = {"sim_mode": "lockstep", "episodes": "on_request", "horizon": horizon}
    overrides = [Parameter(name, value=value) for name, value in parameters.items()]
    arm = ArmNode(parameter_overrides=overrides)
    runner = PolicyNode(policy=recording)
    heard = graph.collect(String, "episode", EVENTS)
    client = JsonClient(graph.probe, "episode")
    rows = []
    with SpinThread(arm, failure=arm.failure), SpinThread(runner, failure=runner.failure):
        for seed in seeds:
            answer = client.call({"op": "reset", "seed": seed}, timeout_s=20)

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


def _assert_equal(ours: tuple[RecordingPolicy, list[dict[str, Any]]], theirs: tuple[RecordingPolicy, list[dict[str, Any]]]) -> None:
    (here, here_rows), (there, there_rows) = ours, theirs
    assert len(here.actions) == len(there.actions) > 0
    for step, (a, b) in enumerate(zip(here.observations, there.observations, strict=True)):
        assert sorted(a) == sorted(b)
        for channel in a:
            assert np.abs(a[channel].astype(np.float64) - b[channel]).max() <= TOLERANCE, (step, channel)
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


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_lockstep_over_ros_equals_in_process_on_fifty_seeds(graph: Graph) -> None:
    policy = RandomWalk(world_contract("lift"))
    seeds = list(range(1_000_000, 1_000_050))
    _assert_equal(_in_process(policy, seeds, horizon=150), _over_ros(graph, policy, seeds, horizon=150))
