"""Requests against their table."""

from __future__ import annotations

from typing import Any

import pytest

from robot_bridge.auxiliary.requests import Argument, BadRequest, Request, find_request

REQUEST = Request(
    about="everything",
    arguments={
        kind: Argument(kind=kind, about=f"a {kind}", needed=kind == "label")
        for kind in ("text", "texts", "label", "number", "integer", "mapping", "frame", "bytes")
    },
)
SHA = "ab" * 32


def test_frames_and_bytes_are_handed_over_for_their_names() -> None:
    given = {"label": "mug", "text": "x", "texts": ["a", "b"], "number": 1, "integer": 3, "mapping": {}, "frame": 17, "bytes": SHA}
    read = REQUEST.read(given, classes=("mug",), frame=lambda stamp: f"frame {stamp}", payload=lambda sha256: sha256.encode())
    assert read == {**given, "frame": "frame 17", "bytes": SHA.encode()}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "label missing: label, a label"),
        ({"label": "bowl"}, "label: 'bowl', valid: mug, cup"),
        ({"label": ["mug"]}, r"label: \['mug'\], valid: mug, cup"),
        ({"label": "mug", "colour": 1}, "no argument colour, valid: text, texts, label"),
        ({"label": "mug", "text": " "}, "text: ' ', valid: text that is not empty"),
        ({"label": "mug", "texts": ["a", "a"]}, "valid: a list of different texts"),
        ({"label": "mug", "texts": [["a"]]}, "valid: a list of different texts"),
        ({"label": "mug", "texts": []}, "valid: a list of different texts"),
        ({"label": "mug", "number": float("inf")}, "number: inf, valid: a finite number"),
        ({"label": "mug", "integer": True}, "integer: True, valid: an integer"),
        ({"label": "mug", "mapping": []}, "valid: a JSON object"),
        ({"label": "mug", "frame": "newest"}, "valid: the stamp of a result, in nanoseconds"),
        ({"label": "mug", "bytes": "../x"}, "valid: a sha256 in 64 hex digits"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(given: dict[str, Any], says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        REQUEST.read(given, classes=("mug", "cup"))


def test_an_unknown_operation_lists_those_there_are() -> None:
    assert find_request({"reset": REQUEST}, "reset") is REQUEST
    for op in ("add", None, ["reset"]):
        with pytest.raises(BadRequest, match="valid: reset"):
            find_request({"reset": REQUEST}, op)
    with pytest.raises(BadRequest, match="takes no requests"):
        find_request({}, "add")
