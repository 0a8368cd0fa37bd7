"""Two arms under the same names: one policy would move both, so neither may move."""

from __future__ import annotations

import math
import time

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from robot_bridge.nodes import second_arm
from robot_bridge.nodes.policy_node import PolicyNode
from robot_bridge.nodes.qos import advertise
from robot_bridge.nodes.second_arm import refuse_second_arm
from robot_bridge.nodes.spin import NodeError, SpinThread
from sim_envs.arm.observation import world_contract
from tests.end_to_end.driver import Driver, arm_node, value
from tests.end_to_end.policies import RandomWalk
from tests.ros_graph import Graph


def test_a_second_arm_node_of_the_same_names_refuses_to_start(graph: Graph, ros: int) -> None:
    with arm_node() as first:
        driver = Driver(graph)
        driver.take()
        driver.start()
        process = graph.process("robot_bridge.nodes.arm_node", "--ros-args", "-r", "__node:=other")
        assert process.process.wait(60) == 1
        line = process.wait_line("another arm node")
        assert f"ROS_DOMAIN_ID {ros}, namespace /)" in line
        driver.wait_moving()  # the first goes on undisturbed
        driver.stop()
        assert first.loop.status().holds == {}


def test_on_one_machine_the_second_is_refused_though_discovery_is_too_slow_to_tell(
    graph: Graph, ros: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second_arm, "publishers", lambda node, topic: [])
    first = refuse_second_arm(graph.probe, since=-math.inf)
    with pytest.raises(NodeError, match=rf"another arm node of these names runs on this machine \(ROS_DOMAIN_ID {ros}, namespace /\)"):
        refuse_second_arm(graph.probe, since=-math.inf)
    left = Node("arm", namespace="left")
    refuse_second_arm(left, since=-math.inf).close()
    left.destroy_node()
    first.close()
    refuse_second_arm(graph.probe, since=-math.inf).close()


def test_an_arm_whose_names_another_one_uses_too_is_in_fault_until_it_is_gone_and_an_operator_rearms(graph: Graph) -> None:
    with arm_node():
        driver = Driver(graph)
        driver.take()
        driver.start()
        driver.wait_moving()
        second = advertise(graph.probe, JointTrajectory, "arm/applied")
        message = driver.wait_state("fault")
        assert "second_arm: another arm node, /probe, publishes /arm/applied (ROS_DOMAIN_ID" in value(message, "reason")
        driver.statuses.wait(lambda m: "second_arm" in value(m, "holds"), after=len(driver.statuses.messages) - 1)
        assert driver.rearm() == (False, "holds are active: ['second_arm']")
        graph.probe.destroy_publisher(second)
        driver.statuses.wait(lambda m: value(m, "holds") == "{}", after=len(driver.statuses.messages) - 1)
        driver.applied.wait(after=len(driver.applied.messages) + 50)
        assert driver.status("state") == "fault"  # by itself nothing goes on
        assert driver.rearm()[0]
        driver.take()
        driver.wait_moving()
        driver.stop()


def test_a_policy_refuses_to_drive_two_arms(graph: Graph) -> None:
    second = advertise(graph.probe, DiagnosticArray, "arm/status")
    with arm_node():
        node = PolicyNode(policy=RandomWalk(world_contract("lift"), size=0.1))
        with SpinThread(node, failure=node.failure):
            deadline = time.monotonic() + 10
            with pytest.raises(NodeError, match="more than one arm: /arm, /probe publish /arm/status .*namespace"):
                while time.monotonic() < deadline:
                    node.failure.raise_reported()
                    time.sleep(0.02)
        node.close()
        node.destroy_node()
    graph.probe.destroy_publisher(second)
