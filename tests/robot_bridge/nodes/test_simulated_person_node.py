"""The simulated person over a real graph: where they are, how far from the arm, and what a radar hears of them."""

from __future__ import annotations

import numpy as np
import pytest
from geometry_msgs.msg import PoseArray
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float32, Float32MultiArray, String

from robot_bridge.auxiliary.monitoring.rfmamba.interface import RadarGeometry, echo_of
from robot_bridge.nodes.qos import LATCHED, SENSOR, subscribe
from robot_bridge.nodes.radar_messages import numbers_of
from robot_bridge.nodes.simulated_person_node import SimulatedPersonNode
from robot_bridge.nodes.spin import NodeError, SpinThread
from robot_bridge.nodes.stamps import to_ns
from tests.robot_bridge.nodes.test_human_radar_node import StandingArm, until
from tests.ros_graph import Graph

STANDS = "0 2.5 0; 5 2.5 0"


def _parameters(**values: object) -> list[Parameter]:
    return [Parameter(name, value=value) for name, value in values.items()]


def test_it_says_the_true_distance_and_where_the_person_is(graph: Graph) -> None:
    arm = StandingArm(graph)
    told, heard = graph.collect(JointState, "sim/human_distance"), graph.collect(Float32, "human/distance", SENSOR)
    people = graph.collect(PoseArray, "sim/person")
    node = SimulatedPersonNode(parameter_overrides=_parameters(path=STANDS, arm_radius_m=0.1))
    with SpinThread(node, failure=node.failure):
        until(lambda: told.messages and heard.messages and people.messages, arm.show)
        assert node.begin_ns is not None
    node.destroy_node()
    # The bench arm ends 1 m along x at height 0, where a thigh and the trunk of somebody who stands at 2.5 m are nearest.
    distance = told.messages[-1].position[0]
    assert list(told.messages[-1].name) == ["distance"] and distance == pytest.approx(2.5 - 1.0 - 0.1 - 0.1, abs=0.1)
    assert heard.messages[-1].data == pytest.approx(distance, abs=1e-6)
    assert to_ns(told.messages[-1].header.stamp) >= node.begin_ns
    assert len(people.messages[-1].poses) == 14 and people.messages[-1].poses[1].position.x == pytest.approx(2.5, abs=0.05)


def test_its_radar_says_how_it_measures_and_what_it_hears(graph: Graph) -> None:
    arm = StandingArm(graph)
    geometries, backgrounds = graph.collect(String, "radar/geometry", LATCHED), []
    subscribe(graph.probe, Float32MultiArray, "radar/background", backgrounds.append, LATCHED)
    echoes, distances = graph.collect(Float32MultiArray, "radar/echo", SENSOR), graph.collect(Float32, "human/distance", SENSOR)
    node = SimulatedPersonNode(parameter_overrides=_parameters(path=STANDS, radar=True, frames=3))
    with SpinThread(node, failure=node.failure):
        until(lambda: len(echoes.messages) > 2 and geometries.messages and backgrounds, arm.show)
    node.destroy_node()
    geometry = RadarGeometry.from_json(geometries.messages[-1].data)
    assert geometry.shape == (3, 4, 4, 32) and geometry.period_s == 0.1
    first, second = (echo_of(numbers_of(message), geometry) for message in echoes.messages[-2:])
    background = echo_of(np.tile(numbers_of(backgrounds[-1]), (3, 1, 1, 1, 1)), geometry)[0]
    assert np.abs(first - background).mean() > 0 and not np.array_equal(first, second)
    assert not distances.messages


def test_what_cannot_be_meant_is_refused(ros: int) -> None:
    for given, why in (
        ({"path": "0 1 1"}, "path .*valid: two or more rows"),
        ({"path": "0 a b; 1 1 1"}, "could not convert"),
        ({"rate_hz": 0.0}, "rate_hz: 0.0, valid: above 0"),
        ({"frames": 0}, "frames: 0, valid: 1 or more"),
    ):
        with pytest.raises(NodeError, match=why):
            SimulatedPersonNode(parameter_overrides=_parameters(**given))
