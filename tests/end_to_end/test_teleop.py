"""A person moves the arm over a real graph, also in a policy's place; what was done is recorded for training."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from trajectory_msgs.msg import JointTrajectory

from rl_core.data.formats import read_dataset
from robot_bridge.cli import main
from robot_bridge.control.limits import panda_limits
from robot_bridge.nodes.json_requests import JsonClient, RequestError
from robot_bridge.nodes.messages import by_name
from robot_bridge.nodes.policy_node import PolicyNode
from robot_bridge.nodes.qos import EVENTS, advertise
from robot_bridge.nodes.spin import NodeError
from robot_bridge.nodes.stamps import to_ns
from robot_bridge.nodes.teleop_node import TeleopNode
from robot_bridge.teleop.base import Event, Reading, SourceError, View
from sim_envs.arm.observation import world_contract
from tests.end_to_end.driver import Driver, value
from tests.end_to_end.policies import RandomWalk
from tests.robot_bridge.command_line import TINY_BC
from tests.ros_graph import Collected, Graph, spun

LEFT = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
WAIT_S = 30.0


class Hand:
    """A source that a test moves."""

    space: Literal["end_effector", "joint"] = "end_effector"

    def __init__(self) -> None:
        self.twist: np.ndarray | None = None
        self.gone = False
        self._events: list[Event] = []
        self.read_count = 0

    def press(self, *events: Event) -> None:
        self._events = [*self._events, *events]

    def open(self) -> None: ...

    def close(self) -> None: ...

    def read(self, view: View) -> Reading:
        if self.gone:
            raise SourceError("leader: no usable answer of servo 3 (elbow_flex) for 0.25 s; check power and cable")
        self.read_count += 1
        events, self._events = self._events, []
        return Reading(events=tuple(events), twist=self.twist)


def arm_node(graph: Graph, namespace: str = "", **parameters: Any) -> None:
    """A simulated arm in a process of its own: in this one policy and teleoperation would stall its driver on a busy machine."""
    arguments = [part for name, value in parameters.items() for part in ("-p", f"{name}:={value}")]
    arguments += ["-r", f"__ns:=/{namespace}"] if namespace else []
    graph.process("robot_bridge.nodes.arm_node", "--ros-args", "-p", "episodes:=on_request", *arguments).wait_line("ready", timeout_s=60)


@contextmanager
def teleop_node(hand: Hand, namespace: str = "", **parameters: Any) -> Iterator[TeleopNode]:
    overrides = [Parameter(name, value=value) for name, value in parameters.items()]
    node = TeleopNode(source=hand, quit=lambda: None, namespace=namespace, parameter_overrides=overrides)
    with spun(node):
        yield node


@contextmanager
def policy_node() -> Iterator[PolicyNode]:
    node = PolicyNode(policy=RandomWalk(world_contract("lift"), size=0.1))
    with spun(node):
        yield node


def await_that(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def wait_authority(driver: Driver, who: str, state: str = "moving") -> None:
    """The first status from now on in which `who` has the arm and it is in `state`."""
    driver.statuses.wait(
        lambda m: value(m, "authority") == who and value(m, "state") == state, after=len(driver.statuses.messages), timeout_s=WAIT_S
    )


def follow(poses: Collected, axis: int, way: float) -> None:
    """Waits until the end effector has gone `way` metres along `axis` from here."""
    poses.wait()
    start = coordinate(poses.messages[-1], axis)
    poses.wait(lambda m: (coordinate(m, axis) - start) * np.sign(way) > abs(way), after=len(poses.messages) - 1, timeout_s=WAIT_S)


def coordinate(message: PoseStamped, axis: int) -> float:
    point = message.pose.position
    return float((point.x, point.y, point.z)[axis])


def assert_within_limits(applied: list[JointTrajectory]) -> None:
    """No joint of the arm went further from one sample to the next than its velocity allows; the gripper starts from where it is, too."""
    limits = panda_limits()
    stamps = np.array([to_ns(message.header.stamp) for message in applied])
    rows = np.array([by_name(limits.names, m.joint_names, m.points[0].positions, what="arm/applied") for m in applied])
    allowed = np.array(limits.velocity) * np.maximum(np.diff(stamps) * 1e-9, 0.01)[:, None]
    steps = np.abs(np.diff(rows, axis=0))
    too_fast = np.argwhere((steps > 1.05 * allowed + 1e-6)[:, : limits.arm_joints])
    assert not len(too_fast), [(limits.names[j], int(i), float(steps[i, j]), float(allowed[i, j])) for i, j in too_fast]


def test_a_person_takes_a_policys_place_hands_it_back_and_the_correction_trains(graph: Graph, tmp_path: Path) -> None:
    recorder = graph.process("robot_bridge.nodes.episode_recorder_node", "--ros-args", "-p", f"folder:={tmp_path / 'run'}")
    poses, actions = graph.collect(PoseStamped, "ee_pose"), graph.collect(JointState, "policy/action")
    hand = Hand()
    arm_node(graph, horizon=100_000)
    with policy_node() as policy, teleop_node(hand):
        driver = Driver(graph)
        recorder.wait_line("recording episodes", timeout_s=60)
        for topic in ("policy/action", "joint_states", "ee_pose", "objects/cube/pose", "episode"):
            await_that(lambda topic=topic: "episode_recorder" in _heard_by(graph, topic), f"{topic} is not recorded")  # type: ignore[misc]
        hand.press("begin")
        wait_authority(driver, "policy")
        begun = len(driver.applied.messages)
        actions.wait(after=30, timeout_s=WAIT_S)
        hand.press("take")
        hand.twist = LEFT
        wait_authority(driver, "teleop")
        refused = _refused(driver)
        follow(poses, 1, 0.04)
        hand.twist = None
        sent = len(actions.messages)
        actions.wait(after=sent + 20, timeout_s=WAIT_S)
        held = [coordinate(message, 1) for message in poses.messages[-20:]]
        assert np.ptp(held) < 2e-3  # without a motion the target stays
        assert {message.header.frame_id for message in actions.messages[sent:]} == {"teleop"}
        assert _refused(driver) == refused
        hand.press("release")
        wait_authority(driver, "policy")
        actions.wait(after=len(actions.messages) + 20, timeout_s=WAIT_S)
        policy.failure.raise_reported()
        hand.press("success")
        recorder.wait_line("episode 3", timeout_s=60)
        assert_within_limits(driver.applied.messages[begun:])
    assert recorder.end() == 0

    before, correction, after = read_dataset(tmp_path / "run").episodes
    assert [part.meta["source"] for part in (before, correction, after)] == ["policy", "teleop", "policy"]
    assert [part.success for part in (before, correction, after)] == [None, True, True]
    assert correction.meta["correction"] and correction.meta["parent"] == before.uuid
    assert np.ptp(correction.observations["eef_pos"][:, 1]) > 0.04 and correction.actions[:, 1].mean() > 0.05
    assert np.diff(correction.stamps_ns).max() < 1e9 and before.stamps_ns[-1] <= correction.stamps_ns[0]
    assert main(["filter", str(tmp_path / "run"), str(tmp_path / "corrections.hdf5"), "--corrections"]) == 0
    chosen = read_dataset(tmp_path / "corrections.hdf5")
    assert [episode.uuid for episode in chosen.episodes] == [correction.uuid]
    assert np.array_equal(chosen.episodes[0].actions, correction.actions)
    _train(tmp_path)


def _refused(driver: Driver) -> dict[str, int]:
    """Refusals that no busy machine is to blame for."""
    return {name: driver.counts().get(name, 0) for name in ("max_lead", "stamp_older_than_last", "malformed", "not_finite")}


def _train(folder: Path) -> None:
    """On a machine too busy to keep the rate, the corrections are trained on at the rate they have."""
    import rl_core.data.training_data as training_data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_data, "RATE_TOLERANCE", 10.0)
        arguments = [
            "train",
            "bc",
            "--dataset",
            str(folder / "corrections.hdf5"),
            "--run-dir",
            str(folder / "bc"),
            *TINY_BC,
            "--updates",
            "3",
        ]
        assert main(arguments) == 0
    assert (folder / "bc/bundle/bundle.json").is_file()


def _heard_by(graph: Graph, topic: str) -> set[str]:
    return {info.node_name for info in graph.probe.get_subscriptions_info_by_topic(graph.probe.resolve_topic_name(topic))}


def test_a_source_that_fails_ends_the_node_with_what_to_check_and_the_arm_holds(graph: Graph) -> None:
    poses, hand = graph.collect(PoseStamped, "ee_pose"), Hand()
    arm_node(graph)
    with teleop_node(hand) as node:
        driver = Driver(graph)
        hand.press("take")
        hand.twist = LEFT
        wait_authority(driver, "teleop")
        follow(poses, 1, 0.02)
        hand.gone = True
        driver.statuses.wait(
            lambda m: value(m, "state") == "holding" and "no command in time" in value(m, "reason"),
            after=len(driver.statuses.messages), timeout_s=WAIT_S,
        )  # fmt: skip
        with pytest.raises(NodeError, match=r"servo 3 \(elbow_flex\).*No command follows: the arm holds"):
            node.failure.raise_reported()
        driver.applied.wait(after=len(driver.applied.messages) + 50)
        _, positions = driver.track()
        assert np.ptp(positions[-30:]) == 0.0


def test_after_an_e_stop_the_arm_is_taken_anew_by_a_person(graph: Graph) -> None:
    button = advertise(graph.probe, Bool, "/e_stop")
    poses, hand = graph.collect(PoseStamped, "ee_pose"), Hand()
    arm_node(graph)
    with teleop_node(hand) as node:
        driver = Driver(graph)
        hand.press("take")
        hand.twist = LEFT
        follow(poses, 1, 0.02)
        button.publish(Bool(data=True))
        stopped_ns = to_ns(driver.wait_state("stopped").header.stamp)
        driver.statuses.wait(lambda m: to_ns(m.header.stamp) > stopped_ns + 1_200_000_000, after=len(driver.statuses.messages) - 1)
        hand.press("take")
        await_that(lambda: "rearm it first" in _said(node), "a take while stopped is not refused")
        assert driver.rearm()[0]
        reads = hand.read_count
        await_that(lambda: hand.read_count > reads + 15, "the node does not read its source")
        assert driver.status("authority") == ""  # the key is held all the time, and nothing takes the arm by itself
        hand.press("take")
        follow(poses, 1, 0.02)


def _said(node: TeleopNode) -> str:
    status = node.status()
    assert status is not None
    return node._requests.said


def test_two_arms_in_one_graph_are_moved_apart_and_episodes_are_marked_over_ros(graph: Graph) -> None:
    left_hand, right_hand = Hand(), Hand()
    right_hand.twist = LEFT  # never taken
    episodes = graph.collect(String, "left/episode", EVENTS)
    poses = {side: graph.collect(PoseStamped, f"{side}/ee_pose") for side in ("left", "right")}
    arm_node(graph, "left")
    arm_node(graph, "right")
    driver = Driver(graph, "left/")
    with teleop_node(left_hand, "left"), teleop_node(right_hand, "right"):
        request = JsonClient(graph.probe, "left/teleop")
        with pytest.raises(RequestError, match="op 'jump', valid: take"):
            request.call({"op": "jump"}, WAIT_S)
        await_that(lambda: _takes(request, "take"), "the node does not become ready")
        wait_authority(driver, "teleop")
        request.call({"op": "begin"}, WAIT_S)
        episodes.wait(lambda m: json.loads(m.data)["phase"] == "running", timeout_s=WAIT_S)
        wait_authority(driver, "teleop")  # the reset took it away; who had it takes it again
        left_hand.twist = LEFT
        follow(poses["left"], 1, 0.02)
        request.call({"op": "discard"}, WAIT_S)
        over = json.loads(episodes.wait(lambda m: '"phase": "over"' in m.data and '"index": 0' in m.data, timeout_s=WAIT_S).data)
        assert over["discarded"] and over["success"] is False
        right = [coordinate(message, 1) for message in poses["right"].messages]
        assert np.ptp(right) < 1e-3


def _takes(request: JsonClient, operation: str) -> bool:
    try:
        return bool(request.call({"op": operation}, 1.0)["ok"])
    except (RequestError, TimeoutError):
        return False


def test_an_episode_begins_once_a_recorder_listens_and_is_kept_with_how_it_went(graph: Graph, tmp_path: Path) -> None:
    episodes, poses, hand = graph.collect(String, "episode", EVENTS), graph.collect(PoseStamped, "ee_pose"), Hand()
    arm_node(graph, horizon=100_000)
    with teleop_node(hand, record=True) as node:
        driver = Driver(graph)
        hand.press("take", "begin")
        await_that(lambda: node.status() is not None and "no episode recorder is heard" in _said(node), "it is not said")
        wait_authority(driver, "teleop")
        assert all(json.loads(message.data)["index"] < 0 for message in episodes.messages)
        recorder = graph.process("robot_bridge.nodes.episode_recorder_node", "--ros-args", "-p", f"folder:={tmp_path / 'demos'}")
        episodes.wait(lambda m: json.loads(m.data)["phase"] == "running", timeout_s=60)
        hand.twist = LEFT
        wait_authority(driver, "teleop")
        follow(poses, 1, 0.02)
        hand.press("success")
        episodes.wait(lambda m: '"phase": "over"' in m.data and '"index": 0' in m.data, timeout_s=WAIT_S)
        await_that(node.recorded, "the recorder does not know how the episode went")
        assert recorder.end() == 0
    (episode,) = read_dataset(tmp_path / "demos").episodes
    assert episode.success and np.ptp(episode.observations["eef_pos"][:, 1]) > 0.02
