"""QoS profiles: endpoints that cannot talk say so."""

from __future__ import annotations

import time
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import Image
from std_msgs.msg import String

from robot_bridge.nodes.qos import LATCHED, LENIENT, SENSOR, STREAM, advertise, subscribe
from robot_bridge.nodes.spin import SpinThread
from tests.ros_graph import Collected, Graph


class _Logger:
    def __init__(self, errors: Collected) -> None:
        self.error = errors.add


def test_incompatible_qos_is_an_error_within_two_seconds_that_names_topic_and_policy(graph: Graph, monkeypatch: Any) -> None:
    """A camera publishes best effort, a policy subscribes reliable: DDS delivers nothing; the user must be told why."""
    errors = Collected()
    policy = Node("policy")
    monkeypatch.setattr(policy, "get_logger", lambda: _Logger(errors))
    with SpinThread(policy):
        advertise(graph.probe, Image, "camera/front/image_raw", SENSOR)
        start = time.monotonic()
        subscribe(policy, Image, "camera/front/image_raw", lambda message: None, STREAM)
        text = errors.wait(timeout_s=5.0)
    assert time.monotonic() - start < 2.0
    for part in ("/camera/front/image_raw", "RELIABILITY", "RELIABLE", "/probe has BEST_EFFORT"):
        assert part in text
    policy.destroy_node()


def test_a_publisher_says_so_too(graph: Graph, monkeypatch: Any) -> None:
    errors = Collected()
    world = Node("world")
    monkeypatch.setattr(world, "get_logger", lambda: _Logger(errors))
    with SpinThread(world):
        subscribe(graph.probe, String, "episode", lambda message: None, LATCHED)
        advertise(world, String, "episode", STREAM)
        text = errors.wait(timeout_s=5.0)
    assert "/episode" in text and "DURABILITY" in text and "/probe has TRANSIENT_LOCAL" in text
    world.destroy_node()


def test_a_lenient_subscription_refuses_no_publisher(graph: Graph) -> None:
    for i, profile in enumerate((SENSOR, STREAM, LATCHED)):
        collected = graph.collect(String, f"topic_{i}", LENIENT)
        publisher = advertise(graph.probe, String, f"topic_{i}", profile)
        deadline = time.monotonic() + 5
        while not collected.messages and time.monotonic() < deadline:
            publisher.publish(String(data="x"))
            try:
                collected.wait(timeout_s=0.1)
            except AssertionError:
                continue
        assert collected.messages


def test_message_info_comes_with_the_message(graph: Graph) -> None:
    received = Collected()
    subscribe(graph.probe, String, "numbered", lambda message, info: received.add((message.data, info)), with_info=True)
    subscribe(graph.probe, String, "numbered", lambda message, info: received.add((message, info)), with_info=True, raw=True)
    publisher = advertise(graph.probe, String, "numbered")
    deadline = time.monotonic() + 5
    while len(received.messages) < 4 and time.monotonic() < deadline:
        publisher.publish(String(data="x"))
        try:
            received.wait(after=3, timeout_s=0.1)
        except AssertionError:
            continue
    gids = {bytes(info["publisher_gid"]["data"]) for _, info in received.messages}
    (endpoint,) = graph.probe.get_publishers_info_by_topic("/numbered")
    assert gids == {bytes(endpoint.endpoint_gid)}
    assert {type(message) for message, _ in received.messages} == {str, bytes}
