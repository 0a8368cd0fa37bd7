"""Requests to the auxiliary node, and kinds that know nothing else, over a real graph."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sensor_msgs.msg import Image
from std_msgs.msg import String, UInt8MultiArray

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.registry import AUXILIARY_METHODS
from robot_bridge.nodes.json_requests import JsonClient, RequestError
from robot_bridge.nodes.messages import image_to_rgb
from robot_bridge.nodes.qos import SENSOR, STREAM, advertise
from robot_bridge.nodes.spin import NodeError
from robot_bridge.nodes.stamps import to_ns
from tests.robot_bridge.auxiliary.cameras import Camera, auxiliary_node, gray, ready, show_until_judged, until
from tests.robot_bridge.auxiliary.fakes import Gate, Noise, other_row
from tests.ros_graph import Graph


def test_requests_of_the_registry_are_answered_between_frames(graph: Graph, bundle: Path) -> None:
    results = graph.collect(String, "aux/brightness/result")
    camera, client = Camera(graph), JsonClient(graph.probe, "auxiliary")
    with auxiliary_node(bundle) as node:
        ready(node)
        before = show_until_judged(camera, results, gray(64))
        answer = client.call({"op": "add_shot", "frame": before["stamp"], "label": "bright"}, 10.0)
        assert answer["result"]["limit"] == pytest.approx(64 / 255) and answer["result"]["seen"] >= 1
        assert show_until_judged(camera, results, gray(64))["scores"]["bright"] == 0.5
        assert client.call({"op": "reset"}, 10.0).keys() == {"id", "ok"}
        assert show_until_judged(camera, results, gray(64))["scores"] == before["scores"]
        for request, says in (
            ({"op": "sing"}, "op 'sing', valid: add_shot, reset"),
            ({"op": "add_shot", "frame": 5, "label": "bright"}, "no frame of stamp 5 ns; frames kept"),
            ({"op": "add_shot", "frame": 5, "label": "grey"}, "label: 'grey', valid: dark, bright"),
            ({"op": "add_shot", "label": "dark"}, "frame missing: frame, which"),
        ):
            with pytest.raises(RequestError, match=says):
                client.call(request, 10.0)
        show_until_judged(camera, results, gray(64))  # a refusal ends nothing


def test_images_and_bytes_follow_the_payload_rules(graph: Graph, bundle: Path, tmp_path: Path) -> None:
    images, downloads = graph.collect(Image, "aux/brightness/image", SENSOR), graph.collect(UInt8MultiArray, "auxiliary/download")
    upload = advertise(graph.probe, UInt8MultiArray, "auxiliary/upload", STREAM)
    client = JsonClient(graph.probe, "auxiliary")
    Camera(graph)
    with auxiliary_node(bundle, store=str(tmp_path / "store")) as node:
        ready(node)
        until(lambda: images.messages, lambda: client.call({"op": "picture"}, 10.0))
        told = client.call({"op": "picture"}, 10.0)["images"]
        assert len(told) == 2 and to_ns(images.messages[0].header.stamp) > 0
        until(lambda: upload.get_subscription_count() > 0)
        upload.publish(UInt8MultiArray(data=b"abc"))
        sha256 = hashlib.sha256(b"abc").hexdigest()
        requests = node._requests
        assert requests is not None
        until(lambda: sha256 in requests._payloads._messages)  # the upload and the request come on topics of their own
        told = client.call({"op": "echo", "data": sha256}, 10.0)["bytes"]
        assert told == {"sha256": hashlib.sha256(b"cba").hexdigest(), "size": 3, "place": "message"}
        assert bytes(downloads.wait().data) == b"cba"
        large = bytes(1_000_001)
        (tmp_path / "store").mkdir()
        (tmp_path / "store" / hashlib.sha256(large).hexdigest()).write_bytes(large)
        told = client.call({"op": "echo", "data": hashlib.sha256(large).hexdigest()}, 10.0)["bytes"]
        assert told["place"] == "store" and len(downloads.messages) == 1


def test_a_node_that_is_busy_says_so_and_a_bug_in_a_request_ends_it(graph: Graph, bundle: Path) -> None:
    results = graph.collect(String, "aux/brightness/result")
    camera, gate, client = Camera(graph), Gate(), JsonClient(graph.probe, "auxiliary")
    with auxiliary_node(bundle) as node:
        ready(node)
        show_until_judged(camera, results, gray(64))
        assert node._worker is not None
        node._worker.loaded.wait = gate
        until(gate.reached.is_set, lambda: camera.show(gray(2)))
        asking = [threading.Thread(target=client.call, args=({"op": "reset"}, 20.0)) for _ in range(8)]
        for thread in asking:
            thread.start()
        worker = node._worker
        until(lambda: len(worker._asked) == 8)
        with pytest.raises(RequestError, match="8 requests wait already"):
            client.call({"op": "reset"}, 10.0)
        gate.open.set()
        for thread in asking:
            thread.join(20.0)
        with pytest.raises(RequestError, match="RuntimeError: a bug; the node ends"):
            client.call({"op": "fail"}, 10.0)
        with pytest.raises(NodeError, match="a bug"):
            until(node.failure.raise_reported)
        node.failure = type(node.failure)()


# -- kinds without a camera ----------------------------------------------------------------------------------------------------


@pytest.fixture
def other_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Any], Any]:
    """other_node(kind): a node that runs the fake of that kind."""

    def make(kind: Any) -> Any:
        monkeypatch.setitem(AUXILIARY_METHODS, f"fake-{kind}", other_row(kind))
        folder = Bundle(kind=kind, method=f"fake-{kind}", config={}, weights={"none": torch.zeros(1)}).save(tmp_path / kind)
        return auxiliary_node(folder, method=f"fake-{kind}")

    return make


def test_a_generators_images_go_out_one_message_each(graph: Graph, other_node: Callable[[Any], Any]) -> None:
    images = graph.collect(Image, "aux/fake_generator/image", SENSOR)
    client = JsonClient(graph.probe, "auxiliary")
    request = {"op": "sample", "condition": {"level": 60}, "seed": 3, "n": 1, "steps": 4}
    with other_node("generator") as node:
        until(lambda: images.messages, lambda: client.call(request, 10.0))
        with pytest.raises(RequestError, match="n missing: n, how many"):
            client.call({"op": "sample", "condition": {}, "seed": 1, "steps": 1}, 10.0)
        assert node.count_publishers("safety/holds") <= 1 and node._guard is None
    direct = Noise().sample({"level": 60}, seed=3, n=1, steps=4)
    assert np.array_equal(image_to_rgb(images.messages[0]), direct[0])


def test_a_dialogue_and_an_agent_answer_requests(graph: Graph, other_node: Callable[[Any], Any]) -> None:
    client = JsonClient(graph.probe, "auxiliary")
    with other_node("dialogue"):
        answer = client.call({"op": "handle", "request": {"text": "cube"}, "context": {"objects": ["cube"]}}, 10.0)
    assert answer["result"] == {"say": "cube, understood", "task": None}
    with other_node("agent"):
        answer = client.call({"op": "step", "goal": "jog", "screen": {"controls": [{"id": 4, "name": "jog"}]}}, 10.0)
    assert answer["result"] == {"op": "click", "id": 4}


def test_only_a_recogniser_is_a_guard(graph: Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(AUXILIARY_METHODS, "fake-agent", other_row("agent"))
    folder = Bundle(kind="agent", method="fake-agent", config={}, weights={"none": torch.zeros(1)}).save(tmp_path / "agent")
    with (
        pytest.raises(NodeError, match="hold_on: 'calm' with kind agent; valid: empty"),
        auxiliary_node(folder, method="fake-agent", hold_on="calm"),
    ):
        pass
