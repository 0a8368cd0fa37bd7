"""Calls with arguments."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from std_msgs.msg import String

from robot_bridge.nodes.json_requests import JsonClient, JsonServer, RequestError
from tests.ros_graph import Graph


def test_a_request_is_answered_once_however_often_it_is_sent(graph: Graph) -> None:
    done: list[Any] = []

    def handle(request: dict[str, Any], reply: Any) -> None:
        done.append(request)
        threading.Timer(1.2, lambda: reply({"ok": True, "seed": request["seed"]})).start()  # the client repeats meanwhile

    client = JsonClient(graph.probe, "episode")  # the asker comes first
    JsonServer(graph.probe, "episode", handle)
    answer = client.call({"op": "reset", "seed": 3}, timeout_s=10.0)
    assert answer["seed"] == 3 and len(done) == 1


def test_a_refused_request_raises_with_the_reason(graph: Graph) -> None:
    def handle(request: dict[str, Any], reply: Any) -> None:
        raise RequestError(f"op {request['op']!r}, valid: reset")

    JsonServer(graph.probe, "episode", handle)
    with pytest.raises(RequestError, match="op 'jump', valid: reset"):
        JsonClient(graph.probe, "episode").call({"op": "jump"}, timeout_s=10.0)


def test_no_answer_is_a_timeout_that_names_the_topic(graph: Graph) -> None:
    with pytest.raises(TimeoutError, match="nobody/request"):
        JsonClient(graph.probe, "nobody").call({"op": "reset"}, timeout_s=0.3)


def test_what_is_no_request_is_not_answered_and_does_no_harm(graph: Graph) -> None:
    JsonServer(graph.probe, "episode", lambda request, reply: reply({"ok": True}))
    sender = graph.probe.create_publisher(String, "episode/request", 10)
    for text in ("not json", "[1, 2]", '{"op": "reset"}', "null"):
        sender.publish(String(data=text))
    assert JsonClient(graph.probe, "episode").call({"op": "reset"}, timeout_s=10.0)["ok"]
