"""Frames of a camera in folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from robot_bridge.auxiliary.image_data import ImageDataError
from robot_bridge.auxiliary.image_files import write_header, write_shard
from robot_bridge.auxiliary.monitoring.manifold.frames import read_frames
from robot_bridge.auxiliary.registry import find_method
from tests.robot_bridge.auxiliary.monitoring.manifold.priors import real_frames


def pictures(folder: Path, *names: str, size: tuple[int, int] = (24, 16)) -> None:
    for index, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((size[1], size[0], 3), index, np.uint8)).save(folder / name)


def test_frames_keep_their_size_and_scenes_stay_together(tmp_path: Path) -> None:
    pictures(tmp_path, "front/one/0.png", "front/one/1.png", "front/two/0.png", "wrist_camera/0.png", "wrist_camera/1.png")
    found = read_frames(tmp_path)
    assert found.frames.shape == (5, 16, 24, 3) and np.array_equal(found.frames[:, 0, 0, 0], np.arange(5))
    assert found.classes == ("front", "wrist camera") and found.labels.tolist() == [0, 0, 0, 1, 1]
    assert found.instances.tolist() == [0, 0, 1, 2, 3]


def test_frames_of_two_sizes_or_none_are_named(tmp_path: Path) -> None:
    with pytest.raises(ImageDataError, match="no such folder; valid: "):
        read_frames(tmp_path / "none")
    with pytest.raises(ImageDataError, match="no class folders; valid: .*CLASS/FILE.jpg with 1 or more"):
        read_frames(tmp_path)
    pictures(tmp_path, "front/0.png")
    pictures(tmp_path, "wrist/0.png", size=(32, 32))
    with pytest.raises(ImageDataError, match=r"wrist/0.png: 32 x 32 pixels, those before it 24 x 16; valid: all of one size"):
        read_frames(tmp_path)
    (tmp_path / "wrist" / "0.png").write_text("no picture")
    with pytest.raises(ImageDataError, match=r"wrist/0.png: not a readable picture"):
        read_frames(tmp_path)
    (tmp_path / "wrist" / "0.png").unlink()
    with pytest.raises(ImageDataError, match="wrist: no pictures"):
        read_frames(tmp_path)


def test_the_method_reads_frames_as_they_are() -> None:
    assert find_method("manifold").read_data.endswith("manifold.frames:read_frames")


def test_a_missing_shard_is_not_passed_over(tmp_path: Path) -> None:
    data = real_frames()
    write_header(tmp_path, data.classes, {"maker": "parts", "images": len(data)})
    for index, part in enumerate(data.split((0.5, 0.5), 0)):
        write_shard(part, tmp_path / f"crate-{index:03d}.npz")
    assert len(read_frames(tmp_path)) == len(data)
    (tmp_path / "crate-001.npz").unlink()
    with pytest.raises(ImageDataError, match=f"hold {len(data) // 2} pictures, images.json says {len(data)}; make the data again"):
        read_frames(tmp_path)
