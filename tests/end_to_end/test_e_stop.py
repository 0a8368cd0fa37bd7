"""The e-stop over a real graph."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import Bool, String

from robot_bridge.arms.base import ArmState
from robot_bridge.control.limits import panda_limits
from robot_bridge.nodes.arm_node import ArmNode
from robot_bridge.nodes.qos import STREAM, advertise, subscribe
from robot_bridge.nodes.simulated_world import WorldArm
from robot_bridge.nodes.spin import SpinThread
from tests.end_to_end.driver import CONTROL_S, JOINT, Driver, arm_node, assert_at_rest_from, joint
from tests.ros_graph import Graph

_LIMITS = panda_limits()
_SPEED = 0.3 * np.pi / 2  # of the swing, rad/s
BRAKING_S = 2 * CONTROL_S + _SPEED / _LIMITS.stop_acceleration[0] + _LIMITS.stop_acceleration[0] / _LIMITS.stop_jerk[0] + CONTROL_S


def _hear_e_stop(arm: ArmNode) -> list[int]:
    """Wall times, ns, at which the control loop was told to stop."""
    times: list[int] = []
    inner = arm.loop.e_stop

    def told(pressed: bool, sender: str) -> None:
        inner(pressed, sender)
        if pressed:
            times.append(time.time_ns())

    arm.loop.e_stop = told  # type: ignore[method-assign]
    return times


def _press(graph: Graph, profile: Any = STREAM) -> Any:
    button = advertise(graph.probe, Bool, "/e_stop", profile)
    deadline = time.monotonic() + 10
    while button.get_subscription_count() == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    return button


@pytest.mark.parametrize("reliability", [ReliabilityPolicy.BEST_EFFORT, ReliabilityPolicy.RELIABLE])
@pytest.mark.parametrize("durability", [DurabilityPolicy.VOLATILE, DurabilityPolicy.TRANSIENT_LOCAL])
def test_an_e_stop_of_any_qos_stops_the_arm(graph: Graph, reliability: ReliabilityPolicy, durability: DurabilityPolicy) -> None:
    with arm_node() as arm:
        driver = Driver(graph)
        times = _hear_e_stop(arm)
        driver.take()
        driver.start()
        driver.wait_moving()
        button = _press(graph, QoSProfile(depth=1, reliability=reliability, durability=durability))
        button.publish(Bool(data=True))
        driver.wait_state("stopped")
        driver.applied.wait(after=len(driver.applied.messages) + 30)
        driver.stop()
        assert_at_rest_from(driver, times[0], within_s=BRAKING_S)


def test_the_e_stop_is_heard_on_a_node_of_its_own_under_any_name(graph: Graph) -> None:
    process = graph.process("robot_bridge.nodes.arm_node", "--ros-args", "-r", "__node:=left_arm", "-r", "__ns:=/left")
    process.wait_line("ready")
    deadline = time.monotonic() + 10
    names: set[str] = set()
    while not any("left" in name for name in names) and time.monotonic() < deadline:
        names = {f"{i.node_namespace}/{i.node_name}" for i in graph.probe.get_subscriptions_info_by_topic("/e_stop")}
        time.sleep(0.02)
    assert names == {"/left/left_arm_e_stop"}
    assert not any("already registered" in line for line in process.output.messages)


def test_a_latched_e_stop_reaches_an_arm_node_that_starts_later(graph: Graph) -> None:
    button = advertise(graph.probe, Bool, "/e_stop", QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL))
    button.publish(Bool(data=True))
    with arm_node():
        driver = Driver(graph)
        assert "e-stop pressed at /probe" in driver.wait_state("stopped").status[0].message


class _Displaced(WorldArm):
    """Its arm is found 0.1 rad aside once `aside` is set."""

    aside = 0.0

    def read(self) -> ArmState:
        state = super().read()
        state.positions[0] += self.aside
        return state


def test_motion_does_not_resume_by_itself_after_e_stop_release(graph: Graph) -> None:
    """Keep sending, release the button: nothing moves until rearm and a new grant of authority, then from the measured pose."""
    with arm_node(make_arm=_Displaced) as arm:
        driver = Driver(graph)
        times = _hear_e_stop(arm)
        button = _press(graph)
        driver.take()
        driver.start()
        driver.wait_moving()
        button.publish(Bool(data=True))
        driver.wait_state("stopped")
        button.publish(Bool(data=False))
        rearmed, why = driver.rearm()
        assert not rearmed and "within the last second" in why
        driver.applied.wait(after=len(driver.applied.messages) + 110)
        assert driver.rearm()[0]
        driver.applied.wait(after=len(driver.applied.messages) + 50)
        assert_at_rest_from(driver, times[0], within_s=BRAKING_S)  # rearmed, but authority was not taken anew
        arm.arm.aside = 0.1  # type: ignore[attr-defined]
        driver.states.wait(after=len(driver.states.messages) + 2)
        rest = joint(driver.applied.messages[-1])
        begin = len(driver.applied.messages)
        driver.take()
        first = driver.applied.wait(lambda message: joint(message) != rest, after=begin)
        measured = driver.states.messages[-1].position[list(driver.states.messages[-1].name).index(JOINT)]
        driver.stop()
        assert abs(joint(first) - rest) > 0.05  # a start from the old output would be at rest's place
        assert abs(joint(first) - measured) < 0.01


class _Blocking(WorldArm):
    """A driver whose calls take 2 s once: always, or when the gripper is to move."""

    block = ""
    _gripper = 0.0

    def command(self, positions: np.ndarray, period_s: float) -> None:
        moved, self._gripper = abs(positions[-1] - self._gripper) > 1e-4, float(positions[-1])
        if self.block == "driver" or (self.block == "gripper" and moved):
            self.block = "done"
            time.sleep(2.0)
        super().command(positions, period_s)


@pytest.mark.parametrize("where", ["driver", "gripper", "callback"])
def test_the_e_stop_works_while_something_is_blocked_for_two_seconds(graph: Graph, where: str) -> None:
    with arm_node(make_arm=_Blocking) as arm:
        driver = Driver(graph)
        times = _hear_e_stop(arm)
        button = _press(graph)
        blocked: list[float] = []

        def block(message: String) -> None:
            blocked.append(time.monotonic())
            time.sleep(2.0)

        subscribe(arm, String, "block", block)
        blocker = advertise(graph.probe, String, "block")
        while blocker.get_subscription_count() == 0:
            time.sleep(0.01)
        driver.take()
        driver.start()
        driver.wait_moving()
        begin = time.time_ns()
        if where == "callback":
            blocker.publish(String())
            while not blocked:
                time.sleep(0.001)
        else:
            arm.arm.block = where  # type: ignore[attr-defined]
            while arm.arm.block != "done":  # type: ignore[attr-defined]
                time.sleep(0.001)
        button.publish(Bool(data=True))
        deadline = time.monotonic() + 1.0
        while not times and time.monotonic() < deadline:
            time.sleep(0.001)
        assert times and times[0] - begin < 1_000_000_000, "the e-stop was not heard while something was blocked"
        driver.wait_state("stopped", "fault", timeout_s=10)
        driver.applied.wait(after=len(driver.applied.messages) + 30)
        driver.stop()
        assert_at_rest_from(driver, times[0], within_s=BRAKING_S)
        if where != "callback":
            assert arm.arm.block == "done"  # type: ignore[attr-defined]


def test_a_required_button_that_falls_silent_stops_the_arm(graph: Graph) -> None:
    button_node = Node("button")
    with SpinThread(button_node), arm_node(required_estops=["/button"]) as arm:
        button = advertise(button_node, Bool, "/e_stop", STREAM)
        driver = Driver(graph)
        for _ in range(3):
            button.publish(Bool(data=False))
            time.sleep(0.1)
        message = driver.wait_state("stopped", timeout_s=5)
        assert "/button silent" in message.status[0].message
        assert not driver.rearm()[0]
        button.publish(Bool(data=False))
        driver.statuses.wait(after=len(driver.statuses.messages) + 2)
        deadline = time.monotonic() + 5
        while not driver.rearm()[0] and time.monotonic() < deadline:
            button.publish(Bool(data=False))
            time.sleep(0.05)
        assert arm.loop.status().state == "holding"
    button_node.destroy_node()
