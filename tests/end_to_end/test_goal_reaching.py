"""One bundle and one launch file bring three arms' hands to goals: the MuJoCo arm, and simulators of the makers' protocols (make sims)."""

from __future__ import annotations

import importlib.util
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from rosbags.highlevel import AnyReader
from std_msgs.msg import String

from robot_bridge.control.limits import ArmLimits
from robot_bridge.nodes.arm_offer import ArmOffer
from robot_bridge.nodes.messages import pose, pose_arrays
from robot_bridge.nodes.qos import LATCHED, STREAM, advertise
from robot_bridge.nodes.stamps import to_ns
from tests.end_to_end.driver import value
from tests.robot_bridge.arms.simulators import franky_sim, trossen_sim
from tests.ros_graph import ROOT, Graph, NodeProcess

NEAR_M = 0.01
PERIOD_S = 0.01


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("goal_reaching", ROOT / "examples/goal_reaching.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


@pytest.fixture(scope="module")
def bundle(example: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's policy after less than half of its training: positions are as good already, orientations are not."""
    made: Path = example.main(tmp_path_factory.mktemp("goal_reaching"), updates=4000)
    return made


class _Arm:
    """A launched arm with its policy, as the user sees it."""

    def __init__(self, graph: Graph, process: NodeProcess) -> None:
        self.process = process
        self.poses = graph.collect(PoseStamped, "ee_pose")
        self.statuses = graph.collect(DiagnosticArray, "arm/status")
        self._probe, self._goals = graph.probe, advertise(graph.probe, PoseStamped, "goal_pose", STREAM)
        offer = graph.collect(String, "arm/contract", LATCHED).wait(timeout_s=120)
        self.limits: ArmLimits = ArmOffer.from_json(offer.data).limits
        self.process.wait_line("nothing received; publish a PoseStamped in frame 'base'", 120.0)
        self.start, self.quaternion = pose_arrays(self.poses.wait(timeout_s=120))

    def position(self) -> np.ndarray:
        return pose_arrays(self.poses.messages[-1])[0]

    def send(self, goal: Any, frame: str = "base") -> None:
        """Asks for a position; the hand keeps the orientation it started with. Before the policy is known here it would be lost."""
        deadline = time.monotonic() + 60.0
        while "policy" not in {info.node_name for info in self._probe.get_subscriptions_info_by_topic("/goal_pose")}:
            assert time.monotonic() < deadline, "the policy node does not listen to goal_pose"
            time.sleep(0.02)
        self._goals.publish(pose(np.asarray(goal), self.quaternion, frame=frame, stamp_ns=0))

    def wait_near(self, goal: Any) -> None:
        """Returns once the hand has stayed within a centimetre of `goal` for half a second."""
        near = 0

        def stays(message: PoseStamped) -> bool:
            nonlocal near
            near = near + 1 if np.linalg.norm(pose_arrays(message)[0] - goal) < NEAR_M else 0
            return near >= 25

        self.poses.wait(stays, after=len(self.poses.messages), timeout_s=100)


@contextmanager
def launched(graph: Graph, bag: Path, bundle: Path, **arguments: str) -> Iterator[_Arm]:
    given = {"bundle": str(bundle), "record": "true", "record_folder": str(bag), **arguments}
    process = graph.process("robot_bridge.cli", "launch", "arm_policy", *(f"{name}:={text}" for name, text in given.items()))
    yield _Arm(graph, process)
    process.end(signal.SIGINT, timeout_s=30)


def _read(bag: Path, topic: str) -> list[Any]:
    with AnyReader([bag]) as reader:
        connections = [connection for connection in reader.connections if connection.topic == topic]
        return [reader.deserialize(raw, connection.msgtype) for connection, _, raw in reader.messages(connections=connections)]


def assert_applied_inside_limits(bag: Path, limits: ArmLimits) -> None:
    """What went to the driver, at every sample in the bag: joint range and velocity. Every start is from the measured pose."""
    messages, states = _read(bag, "/arm/applied"), _read(bag, "/joint_states")
    assert len(messages) > 200
    assert all(tuple(message.joint_names) == limits.names and len(message.points) == 1 for message in messages)
    positions, measured = np.array([m.points[0].positions for m in messages]), np.array([state.position for state in states])
    begin = positions[0]  # an arm found outside its range is not pulled back
    assert (positions >= np.minimum(limits.position_min, begin) - 1e-9).all()
    assert (positions <= np.maximum(limits.position_max, begin) + 1e-9).all()
    stamps, seen = (np.array([to_ns(message.header.stamp) for message in found]) for found in (messages, states))
    periods = np.maximum(1, np.round(np.diff(stamps) / (PERIOD_S * 1e9)))  # more than one where samples were lost
    fast = (np.abs(np.diff(positions, axis=0)) > np.outer(periods, limits.velocity) * PERIOD_S + 1e-6).any(axis=1)
    for i in np.flatnonzero(fast) + 1:  # the arm had not followed (a simulator that lags): it starts anew where it is
        here = measured[np.abs(seen - stamps[i]).argmin()]
        assert (np.abs(positions[i] - here) <= np.array(limits.velocity) * 3 * PERIOD_S).all()
    assert fast.sum() < 0.01 * len(messages)
    assert np.ptp(positions, axis=0)[: limits.arm_joints].max() > 0.05


def test_the_example_learns_to_reach_goals_it_was_not_trained_on(example: ModuleType, bundle: Path) -> None:
    distances, _ = example.judge(bundle, episodes=20)
    assert distances.max() < NEAR_M


def test_the_mujoco_arm_goes_to_goals_takes_up_a_new_one_on_the_way_and_holds_after_one_that_is_none(
    graph: Graph, tmp_path: Path, bundle: Path
) -> None:
    with launched(graph, tmp_path / "bag", bundle, arm="simulated") as arm:
        seen = len(arm.statuses.messages)
        arm.statuses.wait(after=seen + 5)
        assert {value(status, "authority") for status in arm.statuses.messages} == {""}  # without a goal it does not even ask
        first, second = arm.start + [0.05, 0.1, -0.1], arm.start + [-0.05, -0.1, 0.05]
        arm.send(first)
        arm.wait_near(first)
        arm.send(second)
        arm.poses.wait(lambda message: np.linalg.norm(pose_arrays(message)[0] - first) > 0.05, after=len(arm.poses.messages))
        arm.send(first)  # before it has come to the second
        arm.wait_near(first)
        arm.send(second)
        arm.poses.wait(lambda message: np.linalg.norm(pose_arrays(message)[0] - first) > 0.05, after=len(arm.poses.messages))
        arm.send(second, frame="camera")
        arm.process.wait_line("the last goal was refused: goal_pose: frame 'camera', valid: 'base'", 10.0)
        arm.statuses.wait(lambda status: value(status, "state") == "holding", after=len(arm.statuses.messages))
        held = arm.position()
        assert np.linalg.norm(held - second) > 2 * NEAR_M
        arm.send(second)
        arm.wait_near(second)
    assert_applied_inside_limits(tmp_path / "bag", arm.limits)


def test_franky_sim_goes_to_goals(graph: Graph, tmp_path: Path, bundle: Path) -> None:
    pytest.importorskip("franky", reason="pip install 'armstack[franka]'")
    with franky_sim() as host, launched(graph, tmp_path / "bag", bundle, arm="franka", host=host) as arm:
        for way in ([-0.05, 0.1, -0.1], [-0.1, -0.05, -0.05]):
            arm.send(arm.start + way)
            arm.wait_near(arm.start + way)
    assert_applied_inside_limits(tmp_path / "bag", arm.limits)


def test_trossen_arm_sim_goes_to_goals(graph: Graph, tmp_path: Path, bundle: Path) -> None:
    pytest.importorskip("trossen_arm", reason="pip install 'armstack[trossen]'")
    with trossen_sim() as host, launched(graph, tmp_path / "bag", bundle, arm="trossen", host=host) as arm:
        for way in ([0.1, 0.1, 0.1], [0.15, -0.05, 0.05]):
            arm.send(arm.start + way)
            arm.wait_near(arm.start + way)
    assert_applied_inside_limits(tmp_path / "bag", arm.limits)
