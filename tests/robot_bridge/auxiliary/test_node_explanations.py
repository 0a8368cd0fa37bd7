"""A recogniser that explains itself, over a real graph: its topic, its request, its annotated picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import Image
from std_msgs.msg import String

from rl_core.bundle import Bundle, bundle_sha256
from robot_bridge.auxiliary.annotate import annotate
from robot_bridge.auxiliary.bundles import recognition_of
from robot_bridge.auxiliary.method import AuxiliaryMethod
from robot_bridge.auxiliary.requests import Argument, Request
from robot_bridge.nodes.json_requests import JsonClient
from robot_bridge.nodes.messages import image_to_rgb
from robot_bridge.nodes.qos import SENSOR
from tests.robot_bridge.auxiliary.cameras import Camera, auxiliary_node, gray, ready, show_until_judged, until
from tests.robot_bridge.auxiliary.fakes import BRIGHTNESS, Brightness, BrightnessConfig
from tests.ros_graph import Graph


class Explained(Brightness):
    """Says why."""

    def explain(self, frame: NDArray[np.uint8]) -> dict[str, Any]:
        level = float(frame.mean()) / 255
        features = [{"feature": "a very bright surface", "support": level}]
        return {"label": "bright", "accepted": level > 0.5, "support": level, "features": features, "answer": "it is bright"}


def load(bundle: Bundle) -> Explained:
    made_for = recognition_of(bundle)
    return Explained(made_for.classes, float(bundle.weights["limit"]), made_for.config(BrightnessConfig).slope)


EXPLAINED = AuxiliaryMethod(
    **{
        **vars(BRIGHTNESS),
        "load": f"{__name__}:load",
        "requests": {"explain": Request(about="why", arguments={"frame": Argument(kind="frame", about="which")})},
    }
)


def test_words_go_out_as_json_beside_the_scores_and_into_the_picture(graph: Graph, bundle: Path) -> None:
    results, words = graph.collect(String, "aux/brightness/result"), graph.collect(String, "aux/brightness/explanation")
    images = graph.collect(Image, "aux/brightness/image", SENSOR)
    camera, client = Camera(graph), JsonClient(graph.probe, "auxiliary")
    with auxiliary_node(bundle, method=f"{__name__}:EXPLAINED") as node:
        ready(node)
        judged = show_until_judged(camera, results, gray(204))
        said = json.loads(words.wait(lambda m: json.loads(m.data)["stamp"] == judged["stamp"]).data)
        assert {name: said[name] for name in ("camera", "method", "bundle")} == {
            "camera": "front",
            "method": "brightness",
            "bundle": bundle_sha256(bundle),
        }
        assert said["accepted"] and said["features"] == [{"feature": "a very bright surface", "support": 0.8}]
        asked = client.call({"op": "explain", "frame": judged["stamp"]}, 10.0)["result"]
        assert asked == {name: said[name] for name in asked}
        until(lambda: images.messages, lambda: show_until_judged(camera, results, gray(204)))
    plain = annotate(gray(204), judged["scores"], judged["values"], title="brightness")
    assert image_to_rgb(images.messages[0]).shape[0] > plain.shape[0]


def test_a_method_without_words_has_no_topic_for_them(graph: Graph, bundle: Path) -> None:
    with auxiliary_node(bundle) as node:
        topics = {name for name, _ in node.get_publisher_names_and_types_by_node(node.get_name(), node.get_namespace())}
    assert any(name.endswith("aux/brightness/result") for name in topics) and not any(name.endswith("explanation") for name in topics)


def test_long_lines_are_broken_and_shown_below_the_picture() -> None:
    frame = np.full((64, 64, 3), 90, np.uint8)
    short = annotate(frame, {"a": 0.5}, {}, title="m", explanation=["accepted: a"])
    long = annotate(frame, {"a": 0.5}, {}, title="m", explanation=["accepted: a", "- " + "many words " * 8])
    assert annotate(frame, {"a": 0.5}, {}, title="m").shape[0] < short.shape[0] < long.shape[0] and long.shape[1] == 256
    assert (long[short.shape[0] :] > 200).any()
