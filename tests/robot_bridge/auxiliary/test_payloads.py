"""What may be in JSON, frames by stamp, bytes by sha256; an annotated frame."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robot_bridge.auxiliary.annotate import annotate
from robot_bridge.auxiliary.payloads import MESSAGE_LIMIT, FrameRing, PayloadError, PayloadStore, to_json


def test_json_holds_names_and_finite_numbers() -> None:
    values = {"scores": {"mug": 0.25}, "stamp": 1_700_000_000_123_456_789, "labels": ["a", None, True]}
    assert json.loads(to_json(values)) == values


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"image": np.zeros(3)}, "image: ndarray in JSON.*a frame is named by its stamp"),
        ({"a": {"key": b"secret"}}, "a.key: bytes in JSON.*by their sha256"),
        ({"a": [1.0, float("nan")]}, r"a\[1\]: nan, valid: a finite number"),
        ({"score": np.float32(1)}, "score: float32"),
        ({"a": {3: 1}}, "key 3, valid: text"),
    ],
)
def test_arrays_bytes_and_nan_are_refused_by_name(values: dict[str, Any], says: str) -> None:
    with pytest.raises(PayloadError, match=says):
        to_json(values)


def test_the_newest_frames_are_found_by_their_stamp() -> None:
    ring = FrameRing(capacity=2)
    with pytest.raises(PayloadError, match="frames kept: none yet"):
        ring.get(1)
    frames = {stamp: np.full((2, 2, 3), stamp, np.uint8) for stamp in (1, 2, 3)}
    for stamp, frame in frames.items():
        ring.put(stamp, frame)
    assert ring.get(3) is frames[3] and ring.get(2) is frames[2]
    with pytest.raises(PayloadError, match="no frame of stamp 1 ns; frames kept: 2 from 2 to 3"):
        ring.get(1)


def test_bytes_go_by_sha256_small_ones_in_a_message_large_ones_as_a_file(tmp_path: Path) -> None:
    store = PayloadStore(tmp_path / "store")
    small, large = b"keys", bytes(MESSAGE_LIMIT + 1)
    assert store.put(small) == {"sha256": hashlib.sha256(small).hexdigest(), "size": 4, "place": "message"}
    assert not (tmp_path / "store").exists()
    told = store.put(large)
    assert told["place"] == "store" and (tmp_path / "store" / told["sha256"]).read_bytes() == large
    assert store.get(hashlib.sha256(small).hexdigest()) == small and store.get(told["sha256"]) == large
    assert PayloadStore(tmp_path / "store").get(told["sha256"]) == large  # another process


def test_bytes_that_are_not_there_exchanged_or_misnamed_are_refused(tmp_path: Path) -> None:
    store = PayloadStore(tmp_path)
    (tmp_path / "secret").write_text("not yours")
    with pytest.raises(PayloadError, match="no sha256, valid: 64 hex digits"):
        store.get("../secret")
    with pytest.raises(PayloadError, match="send them first, or put the file into"):
        store.get("0" * 64)
    (tmp_path / ("0" * 64)).write_bytes(b"other")
    with pytest.raises(PayloadError, match="damaged or exchanged"):
        store.get("0" * 64)
    with pytest.raises(PayloadError, match="without a store; valid: at most 1000000"):
        PayloadStore().put(bytes(MESSAGE_LIMIT + 1))


def test_memory_is_bounded() -> None:
    store = PayloadStore()
    told = [store.put(bytes([number])) for number in range(17)]
    assert store.get(told[-1]["sha256"]) == bytes([16])
    with pytest.raises(PayloadError):
        store.get(told[0]["sha256"])


def test_an_annotated_frame_is_the_frame_enlarged_with_a_bar_that_turns_red() -> None:
    frame = np.full((16, 32, 3), 100, np.uint8)
    frame[0, 0] = 200
    plain = annotate(frame, {"mug": 0.9, "bowl": 0.1}, {"unknown": 0.2}, title="demul")
    assert plain.shape[:2] > (256, 512) and plain[0, 0].tolist() == [200] * 3 and plain[255, 511].tolist() == [100] * 3
    assert plain[-1, -1].tolist() == [24, 24, 24]
    heat = np.zeros((2, 4), np.float32)
    heat[1, 3] = 1.0
    alarmed = annotate(frame, {"mug": 0.9}, {}, heat, title="demul", alarm="unknown 0.9 above 0.5")
    assert alarmed[-1, -1].tolist() == [120, 0, 0]
    assert alarmed[255, 511, 0] > 150 > alarmed[255, 511, 2] and alarmed[100, 100].tolist() == [100] * 3


def test_numbers_that_are_too_long_for_a_line_go_over_two() -> None:
    frame, values = np.zeros((256, 256, 3), np.uint8), {"accepted": 1.0, "support": 0.71}
    short = annotate(frame, {"mug": 1.0}, values, title="selfsynth")
    longer = annotate(frame, {"mug": 1.0}, {**values, "unexplained": 0.29}, title="selfsynth")
    assert longer.shape[0] > short.shape[0] and longer.shape[1] == 256
