"""Pictures and poses in bags of other robots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_core.data.episode import DatasetError, Episode
from tests.rl_core.data import bag_messages as bags
from tests.rl_core.data.bag_messages import MAPPING, MS, START_NS, bench_arm, only, read_with_mapping, write_foreign_bag

PICTURE = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
CAMERA = """
    - {name: scene, kind: image, shape: [4, 6, 3], encoding: rgb8, row_order: %s, max_age_s: 1.0}
  action:"""
CAMERA_TOPIC = "  scene: {topic: /camera}\naction: {topic: /arm"


@pytest.mark.parametrize(
    ("encoding", "pixels", "expected"),
    [
        ("rgb8", PICTURE, PICTURE),
        ("bgr8", PICTURE[..., ::-1], PICTURE),
        ("rgba8", np.dstack([PICTURE, np.full((4, 6), 7, np.uint8)]), PICTURE),
        ("mono8", PICTURE[..., :1], np.repeat(PICTURE[..., :1], 3, axis=-1)),
    ],
)
@pytest.mark.parametrize("row_order", ["top_down", "bottom_up"])
def test_pictures_are_rgb_whatever_the_message_s_encoding_and_padding(
    tmp_path: Path, encoding: str, pixels: Any, expected: Any, row_order: str
) -> None:
    messages = [*bench_arm(), bags.image("/camera", START_NS - MS, pixels, encoding, padding=5)]
    mapping = MAPPING.replace("\n  action:", CAMERA % row_order).replace("action: {topic: /arm", CAMERA_TOPIC)
    episode = only(read_with_mapping(write_foreign_bag(tmp_path / "bag", messages), mapping))
    found = episode.observations["scene"]
    assert found.shape == (6, 4, 6, 3) and found.dtype == np.uint8
    np.testing.assert_array_equal(found[3], expected if row_order == "top_down" else expected[::-1])
    assert episode.observation_age_ns["scene"].tolist() == [MS + 100 * MS * k for k in range(6)]


@pytest.mark.parametrize(
    ("encoding", "said"), [("bayer_rggb8", "encoding 'bayer_rggb8', valid: .*'bgr8'"), ("rgb8", r"\(4, 5, 3\) rgb8, valid")]
)
def test_a_picture_of_another_encoding_or_size_is_an_error(tmp_path: Path, encoding: str, said: str) -> None:
    messages = [*bench_arm(), bags.image("/camera", START_NS, PICTURE[:, :5], encoding)]
    mapping = MAPPING.replace("\n  action:", CAMERA % "top_down").replace("action: {topic: /arm", CAMERA_TOPIC)
    with pytest.raises(DatasetError, match=said):
        read_with_mapping(write_foreign_bag(tmp_path / "bag", messages), mapping)


POSE = """
    - {name: cup_pos, names: [x, y, z], unit: m, frame: base}
    - {name: cup_quat, kind: quaternion, frame: base}
  action:"""
POSE_TOPIC = "  cup_pos: {topic: /cup}\n  cup_quat: {topic: /cup}\naction: {topic: /arm"


def _with_cup(folder: Path, quaternion: tuple[float, ...], frame: str) -> Episode:
    cups = [bags.pose("/cup", START_NS + 100 * MS * k, (0.1, 0.2, 0.3), quaternion, frame) for k in range(6)]
    mapping = MAPPING.replace("\n  action:", POSE).replace("action: {topic: /arm", POSE_TOPIC)
    return only(read_with_mapping(write_foreign_bag(folder / "bag", [*bench_arm(), *cups]), mapping))


def test_poses_keep_their_order_x_y_z_w(tmp_path: Path) -> None:
    half = float(np.sqrt(0.5))
    episode = _with_cup(tmp_path, (0.0, 0.0, half, half), "left/base")
    np.testing.assert_array_equal(episode.observations["cup_quat"][2], np.float32([0, 0, half, half]))
    np.testing.assert_array_equal(episode.observations["cup_pos"][2], np.float32([0.1, 0.2, 0.3]))


@pytest.mark.parametrize(
    ("quaternion", "frame", "said"),
    [
        ((0.0, 0.0, 0.0, 2.0), "base", "quaternion .* valid: norm 1"),
        ((0.0, 0.0, 0.0, 1.0), "world", "frame 'world', valid for cup_.*: 'base'"),
    ],
)
def test_a_pose_of_another_frame_or_with_a_wrong_norm_is_an_error(
    tmp_path: Path, quaternion: tuple[float, ...], frame: str, said: str
) -> None:
    with pytest.raises(DatasetError, match=said):
        _with_cup(tmp_path, quaternion, frame)
