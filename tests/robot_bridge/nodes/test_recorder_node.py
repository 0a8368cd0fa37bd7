"""The recorder over a real graph."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from mcap.reader import make_reader
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore
from std_msgs.msg import String, UInt8MultiArray

from rl_core.data.formats.bag import recover
from robot_bridge.nodes.qos import EVENTS, LATCHED, SENSOR, advertise
from tests.ros_graph import Collected, Graph, NodeProcess

TYPES = get_typestore(Stores.ROS2_KILTED)


def _texts(bag: Path, topic: str) -> list[str]:
    with Reader(bag) as reader:
        messages: list[Any] = [TYPES.deserialize_cdr(data, c.msgtype) for c, _, data in reader.messages() if c.topic == topic]
    return [message.data for message in messages]


def _recorder(graph: Graph, folder: Path, *parameters: str) -> tuple[NodeProcess, Collected]:
    diagnostics = graph.collect(DiagnosticArray, "diagnostics")
    arguments = ["--ros-args", "-p", f"folder:={folder}", *(part for p in parameters for part in ("-p", p))]
    return graph.process("robot_bridge.nodes.recorder_node", *arguments), diagnostics


def _counts(message: DiagnosticArray, topic: str) -> dict[str, int]:
    values = {pair.key: pair.value for pair in message.status[0].values}
    found: dict[str, int] = json.loads(values.get(topic, '{"received": 0, "lost": 0, "dropped": 0}'))
    return found


def _episodes(file: Path) -> list[dict[str, Any]]:
    with open(file, "rb") as stream:
        return [{k: json.loads(v) for k, v in m.metadata.items()} for m in make_reader(stream).iter_metadata() if m.name == "episode"]


def test_contracts_and_episodes_are_kept_and_gaps_counted_per_topic(graph: Graph, tmp_path: Path) -> None:
    contract = advertise(graph.probe, String, "arm/contract", LATCHED)
    contract.publish(String(data="the contract"))  # before the recorder is there
    episode = advertise(graph.probe, String, "episode", EVENTS)
    camera = advertise(graph.probe, UInt8MultiArray, "camera/front/blob", SENSOR)
    process, diagnostics = _recorder(graph, tmp_path / "bag")
    process.wait_line("recording into")
    image = UInt8MultiArray(data=bytes(100_000))
    deadline = time.monotonic() + 15
    while not (episode.get_subscription_count() and camera.get_subscription_count()) and time.monotonic() < deadline:
        time.sleep(0.01)
    camera.publish(image)
    diagnostics.wait(lambda m: _counts(m, "/camera/front/blob")["received"] > 0)
    published = 1
    for index in range(2):
        episode.publish(String(data=json.dumps({"index": index, "seed": index + 7, "phase": "running", "task": "lift", "success": False})))
        for _ in range(50):
            camera.publish(image)
            time.sleep(0.005)
        published += 50
        diagnostics.wait(lambda m, n=published: n - 5 < sum(_counts(m, "/camera/front/blob").values()) <= n)  # type: ignore[misc]
        episode.publish(String(data=json.dumps({"index": index, "seed": index + 7, "phase": "over", "task": "lift", "success": True})))
        diagnostics.wait(lambda m, n=2 * index + 2: _counts(m, "/episode")["received"] == n, after=len(diagnostics.messages))  # type: ignore[misc]
    assert process.end() == 0
    (file,) = (tmp_path / "bag").glob("*.mcap")
    episodes = _episodes(file)
    with Reader(tmp_path / "bag") as reader:
        bagged = {c.topic: c.msgcount for c in reader.connections}
    assert _texts(tmp_path / "bag", "/arm/contract") == ["the contract"]
    assert [(e["index"], e["seed"], e["success"]) for e in episodes] == [(0, 7, True), (1, 8, True)]
    for found in episodes:
        gaps = found["gaps"]["/camera/front/blob"]
        assert gaps["received"] > 0 and gaps["dropped"] == 0 and 45 <= gaps["received"] + gaps["lost"] <= 55
    assert bagged["/camera/front/blob"] == _counts(diagnostics.messages[-1], "/camera/front/blob")["received"]


def test_a_full_queue_drops_and_says_so(graph: Graph, tmp_path: Path) -> None:
    stream = advertise(graph.probe, UInt8MultiArray, "camera/front/blob")
    process, diagnostics = _recorder(graph, tmp_path / "bag", "queue_mb:=0.05")  # one message is larger than the queue
    process.wait_line("recording into")
    deadline = time.monotonic() + 15
    while not any(_counts(m, "/camera/front/blob")["dropped"] for m in diagnostics.messages) and time.monotonic() < deadline:
        stream.publish(UInt8MultiArray(data=bytes(100_000)))
        time.sleep(0.02)
    message = diagnostics.messages[-1].status[0]
    assert _counts(diagnostics.messages[-1], "/camera/front/blob")["dropped"] > 0
    assert "camera/front/blob" in message.message and message.level == b"\x01"
    assert process.end() == 0


def test_killed_recorder_leaves_a_readable_bag_and_the_next_one_makes_it_whole(graph: Graph, tmp_path: Path) -> None:
    numbers = advertise(graph.probe, String, "numbers")
    process, diagnostics = _recorder(graph, tmp_path / "bag")
    process.wait_line("recording into")
    deadline = time.monotonic() + 15
    sent = 0
    while not any(_counts(m, "/numbers")["received"] > 50 for m in diagnostics.messages) and time.monotonic() < deadline:
        numbers.publish(String(data=str(sent)))
        sent += 1
        time.sleep(0.02)
    process.kill()
    known = max(_counts(m, "/numbers")["received"] for m in diagnostics.messages)
    second, _ = _recorder(graph, tmp_path / "bag")
    second.wait_line("did not close this bag")
    second.wait_line("bag_1")
    values = [int(text) for text in _texts(tmp_path / "bag", "/numbers")]
    assert len(values) > 0 and values == list(range(values[0], values[0] + len(values)))
    assert known - len(values) < 75  # at most what came in the last flush period is missing (50 a second)
    assert recover(tmp_path / "bag") >= len(values)


def test_a_folder_that_nothing_can_be_written_into_is_refused_by_its_parameter(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    process, _ = _recorder(graph, tmp_path / "file" / "bag")
    process.wait_line(f"parameter folder {tmp_path}/file/bag: {tmp_path}/file is a file, valid: a folder")
    assert process.process.wait(10) == 1
