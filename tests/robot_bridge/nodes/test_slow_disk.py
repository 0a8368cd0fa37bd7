"""The recorder on a disk that is slower than its cameras."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from mcap.reader import make_reader
from std_msgs.msg import String, UInt8MultiArray

from robot_bridge.nodes.qos import EVENTS, advertise
from tests.ros_graph import Graph

CAMERAS = ("front", "wrist", "left", "right")
PICTURE = bytes(50_000)
PICTURES = 40


def test_a_recorder_of_four_cameras_beyond_the_disks_rate_says_what_it_dropped_in_the_episodes_metadata(
    graph: Graph, tmp_path: Path
) -> None:
    """4 x 50 kB x 20 a second is eight times what this disk takes."""
    diagnostics = graph.collect(DiagnosticArray, "diagnostics")
    topics = {f"/camera/{name}/image_raw": advertise(graph.probe, UInt8MultiArray, f"camera/{name}/image_raw") for name in CAMERAS}
    episode = advertise(graph.probe, String, "episode", EVENTS)
    process = graph.process(
        "tests.robot_bridge.nodes.slow_disk_recorder", "--ros-args", "-p", f"folder:={tmp_path / 'bag'}", "-p", "queue_mb:=0.25"
    )
    process.wait_line("recording into")
    deadline = time.monotonic() + 15
    while not all(p.get_subscription_count() for p in (episode, *topics.values())) and time.monotonic() < deadline:
        time.sleep(0.01)

    def counts(message: DiagnosticArray) -> dict[str, dict[str, int]]:
        return {pair.key: json.loads(pair.value) for pair in message.status[0].values if pair.key.startswith("/")}

    facts = {"index": 0, "seed": 7, "task": "lift", "success": False}
    episode.publish(String(data=json.dumps({**facts, "phase": "running"})))
    diagnostics.wait(lambda m: "/episode" in counts(m))
    for _ in range(PICTURES):
        for publisher in topics.values():
            publisher.publish(UInt8MultiArray(data=PICTURE))
        time.sleep(0.05)
    diagnostics.wait(lambda m: all(counts(m).get(topic, {}).get("received") == PICTURES for topic in topics))
    episode.publish(String(data=json.dumps({**facts, "phase": "over"})))
    diagnostics.wait(lambda m: counts(m).get("/episode", {}).get("received") == 2)
    assert process.end() == 0
    (file,) = (tmp_path / "bag").glob("*.mcap")
    with open(file, "rb") as stream:
        reader = make_reader(stream)
        (found,) = [{k: json.loads(v) for k, v in m.metadata.items()} for m in reader.iter_metadata() if m.name == "episode"]
        kept: Counter[str] = Counter(channel.topic for _, channel, _ in reader.iter_messages())
    gaps: dict[str, Any] = found["gaps"]
    for topic in topics:
        assert gaps[topic]["received"] == PICTURES and gaps[topic]["lost"] == 0
        assert gaps[topic]["dropped"] == PICTURES - kept[topic] > 0
