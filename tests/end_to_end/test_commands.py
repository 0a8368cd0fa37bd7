"""Commands over a real graph: whose, how old, in what order."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import Bool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_bridge.nodes.json_requests import JsonClient, RequestError
from robot_bridge.nodes.messages import diagnostic
from robot_bridge.nodes.qos import advertise
from tests.end_to_end.driver import CONTROL_S, JOINT, Driver, arm_node, assert_at_rest_from, value
from tests.end_to_end.test_e_stop import BRAKING_S
from tests.ros_graph import Graph

COMMAND_AGE_S = 0.1  # two policy periods


def test_joint_order_of_a_command_is_by_name_never_by_index(graph: Graph) -> None:
    with arm_node():
        driver = Driver(graph)
        driver.take()
        start = driver.states.messages[-1]
        deadline = time.monotonic() + 10
        moved: Any = start
        while time.monotonic() < deadline:
            driver.send(0.2, reverse=True)
            time.sleep(0.05)
            moved = driver.states.messages[-1]
            if abs(moved.position[0] - start.position[0]) > 0.15:
                break
    change = np.abs(np.array(moved.position) - np.array(start.position))
    assert list(moved.name)[0] == JOINT and change[0] > 0.15 and change[1:7].max() < 0.05


def test_a_stale_command_is_dropped_within_two_periods(graph: Graph) -> None:
    with arm_node():
        driver = Driver(graph)
        driver.take()
        driver.start()
        driver.wait_moving()
        driver.stop()
        stopped_ns = time.time_ns()
        driver.applied.wait(after=len(driver.applied.messages) + 50)
        assert_at_rest_from(driver, stopped_ns, within_s=COMMAND_AGE_S + BRAKING_S)
        driver.wait_state("holding")
        assert "no command in time" in driver.status("reason")


@pytest.mark.parametrize("shift_s", [-6.0, 6.0])
def test_a_stamp_far_in_the_past_or_future_is_refused(graph: Graph, shift_s: float) -> None:
    with arm_node():
        driver = Driver(graph)
        driver.take()
        driver.start()
        driver.wait_moving()
        driver.stop()
        driver.send(0.1, stamp_shift_s=shift_s)
        driver.statuses.wait(lambda m: "stamp_outside_window" in value(m, "last_refusal"), after=len(driver.statuses.messages) - 1)
        refused_ns = time.time_ns()
        driver.applied.wait(after=len(driver.applied.messages) + 50)
        assert_at_rest_from(driver, refused_ns, within_s=COMMAND_AGE_S + BRAKING_S)


def test_who_has_no_authority_moves_nothing_and_is_counted(graph: Graph) -> None:
    with arm_node():
        driver = Driver(graph)
        driver.send(0.1)
        driver.statuses.wait(lambda m: "no_authority" in value(m, "last_refusal"))
        driver.take()
        driver.start()
        driver.wait_moving()
        client = JsonClient(graph.probe, "arm/authority")
        for request, reason in (
            ({"op": "take", "source": "policy", "sender": "ff"}, "policy .* has authority"),
            ({"op": "take", "source": "cat"}, "unknown source 'cat'"),
            ({"op": "grab"}, "op 'grab', valid: take, release"),
        ):
            with pytest.raises(RequestError, match=reason):
                client.call(request, 5.0)
        driver.wait_moving()  # the holder goes on undisturbed
        driver.stop()


@pytest.mark.parametrize("positions", [None, [0.0, 0.0]])
def test_a_malformed_command_is_counted_and_makes_the_arm_hold(graph: Graph, positions: list[float] | None) -> None:
    with arm_node() as arm:
        driver = Driver(graph)
        driver.take()
        driver.start()
        driver.wait_moving()
        driver.stop()
        broken = JointTrajectory(joint_names=list(driver.states.messages[-1].name))
        broken.header.stamp, broken.header.frame_id = driver.states.messages[-1].header.stamp, driver.source
        broken.points = [] if positions is None else [JointTrajectoryPoint(positions=positions)]
        driver.commands.publish(broken)
        driver.statuses.wait(lambda m: "malformed: positions" in value(m, "last_refusal"), after=len(driver.statuses.messages) - 1)
        assert driver.counts()["malformed"] == 1
        assert "malformed" in driver.status("reason") and driver.status("state") == "holding"
        driver.start()
        driver.wait_moving()
        driver.stop()
        arm.failure.raise_reported()


@pytest.mark.parametrize("reliability", [ReliabilityPolicy.BEST_EFFORT, ReliabilityPolicy.RELIABLE])
@pytest.mark.parametrize("durability", [DurabilityPolicy.VOLATILE, DurabilityPolicy.TRANSIENT_LOCAL])
def test_a_guard_of_any_qos_makes_the_arm_hold(graph: Graph, reliability: ReliabilityPolicy, durability: DurabilityPolicy) -> None:
    profile = QoSProfile(depth=1, reliability=reliability, durability=durability)
    with arm_node():
        driver = Driver(graph)
        guard = advertise(graph.probe, DiagnosticArray, "safety/holds", profile)
        while guard.get_subscription_count() == 0:
            time.sleep(0.01)
        driver.take()
        driver.start()
        driver.wait_moving()
        judged = {"judged_stamp": time.time_ns(), "max_age": 5.0}
        entry = diagnostic("guard", judged, level=DiagnosticStatus.ERROR, message="a person is near")
        guard.publish(DiagnosticArray(status=[entry]))
        message = driver.statuses.wait(lambda m: "a person is near" in value(m, "reason"), after=len(driver.statuses.messages) - 1)
        held_ns = time.time_ns()
        driver.applied.wait(after=len(driver.applied.messages) + 30)
        assert value(message, "state") == "holding"
        assert_at_rest_from(driver, held_ns, within_s=BRAKING_S)
        entry.level = DiagnosticStatus.OK
        guard.publish(DiagnosticArray(status=[entry]))
        driver.wait_moving()  # after a guard's hold motion may go on by itself
        driver.stop()


def test_a_guard_that_fell_silent_keeps_its_hold_until_an_operator_clears_it_by_name(graph: Graph) -> None:
    with arm_node():
        driver = Driver(graph)
        guard = advertise(graph.probe, DiagnosticArray, "safety/holds")
        while guard.get_subscription_count() == 0:
            time.sleep(0.01)
        guard.publish(DiagnosticArray(status=[diagnostic("guard", {"max_age": "soon"}, level=DiagnosticStatus.OK)]))
        message = driver.statuses.wait(lambda m: "report cannot be read" in value(m, "reason"))
        assert value(message, "state") == "holding"
        clear = JsonClient(graph.probe, "arm/clear_hold")
        with pytest.raises(RequestError, match="no hold named 'guards'.*guard"):
            clear.call({"name": "guards"}, 5.0)
        deadline = time.monotonic() + 5
        cleared = False
        while not cleared and time.monotonic() < deadline:
            try:
                cleared = bool(clear.call({"name": "guard"}, 5.0)["ok"])
            except RequestError as error:
                assert "is alive" in str(error)  # it spoke within the last second
                driver.statuses.wait(after=len(driver.statuses.messages))
        assert cleared
        driver.take()
        driver.start()
        driver.wait_moving()
        driver.stop()


def test_two_arms_in_one_graph_are_driven_apart_and_stopped_together(graph: Graph) -> None:
    poses = graph.collect(PoseStamped, "left/ee_pose")
    button = advertise(graph.probe, Bool, "/e_stop")
    with arm_node(namespace="left"), arm_node(namespace="right"):
        left, right = Driver(graph, "left/"), Driver(graph, "right/")
        left.take()
        left.start()
        left.wait_moving()
        _, still = right.track()
        assert np.ptp(still) == 0.0
        assert poses.wait().header.frame_id == "left/base"
        button.publish(Bool(data=True))
        left.wait_state("stopped")
        right.wait_state("stopped")
        left.stop()


def test_the_control_period_is_kept(graph: Graph) -> None:
    with arm_node():
        driver = Driver(graph)
        driver.applied.wait(after=200)
        stamps, _ = driver.track()
        assert np.median(np.diff(stamps)) == pytest.approx(CONTROL_S * 1e9, rel=0.1)
