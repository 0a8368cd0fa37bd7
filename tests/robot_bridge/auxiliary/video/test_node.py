"""The search in the auxiliary node over a real graph: answers name the stamps of the pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from std_msgs.msg import String

from rl_core.bundle import Bundle
from robot_bridge.nodes.json_requests import JsonClient, RequestError
from tests.robot_bridge.auxiliary.cameras import Camera, auxiliary_node, ready, show_until_judged
from tests.robot_bridge.auxiliary.video.colour_clips import FRAMES, SIDE, film, says
from tests.ros_graph import Graph


def fast(bundle: Path, folder: Path) -> Path:
    """The bundle, but with every picture taken, however soon it comes."""
    from dataclasses import replace

    whole = Bundle.load(bundle)
    settings = {**whole.config["settings"], "fps": 1000.0}
    return replace(whole, config={**whole.config, "settings": settings}).save(folder)


def test_a_request_finds_when_something_was_seen(graph: Graph, searcher_bundle: Path, tmp_path: Path, tiny: None) -> None:
    results = graph.collect(String, "aux/tempme/result")
    camera, client, generator = Camera(graph, SIDE), JsonClient(graph.probe, "auxiliary"), np.random.default_rng(3)
    stamps: dict[tuple[str, str], list[int]] = {}
    with auxiliary_node(fast(searcher_bundle, tmp_path / "bundle"), method="tempme", max_age_s=30.0) as node:
        ready(node)
        assert client.call({"op": "reset"}, 10.0)["result"] == {"clips": 0}
        for turn in (("red", "blue"), ("green", "yellow")):
            shown = [show_until_judged(camera, results, frame) for frame in film(*turn, generator)]
            stamps[turn] = [one["stamp"] for one in shown]
            assert set(shown[0]["scores"]) == set(node._recognition.classes)  # type: ignore[union-attr]
        for turn in stamps:
            answer = client.call({"op": "find", "text": says(*turn), "top": 1}, 10.0)
            found = answer["result"]
            assert "unknown_words" not in answer
            assert len(found) == 1 and -1 <= found[0]["score"] <= 1
            assert found[0]["start"] in stamps[turn] and found[0]["end"] == stamps[turn][FRAMES - 1]
        assert client.call({"op": "set_vocabulary", "names": [says("red", "blue")]}, 10.0)["result"]["classes"] == [says("red", "blue")]
        assert client.call({"op": "find", "text": "a red elephant"}, 10.0)["unknown_words"] == ["elephant"]
        answer = client.call({"op": "set_vocabulary", "names": ["a red giraffe", "a blue elephant"]}, 10.0)
        assert answer["unknown_words"] == ["elephant", "giraffe"] and len(answer["result"]["classes"]) == 2
        for request, words in (
            ({"op": "find", "text": " "}, "text that is not empty"),
            ({"op": "find"}, "text missing: text, what happened"),
            ({"op": "find", "text": "a mug", "top": 0}, "top: 0, valid: 1 or more"),
            ({"op": "find", "text": "a mug " * 20}, rf"^(?!.*{'a mug ' * 11}).*tokens with SOS and EOT"),
        ):
            with pytest.raises(RequestError, match=words):
                client.call(request, 10.0)
        show_until_judged(camera, results, film("red", "blue", generator)[0])  # a refusal ends nothing
