"""Shards that lack pictures are not used unsaid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from robot_bridge.auxiliary.image_data import ImageData, ImageDataError
from robot_bridge.auxiliary.image_files import read_images, write_header, write_shard


def shards(folder: Path, made_from: dict[str, object]) -> None:
    write_header(folder, ("bolt", "nut"), made_from)
    for index in range(2):
        frames = np.full((3, 8, 8, 3), index, np.uint8)
        data = ImageData(frames=frames, labels=np.full(3, index), classes=("bolt", "nut"), instances=np.arange(3) + 3 * index)
        write_shard(data, folder / f"crate-{index:03d}.npz")


@pytest.mark.parametrize("name", ["images", "stills"])
def test_a_class_is_not_missing_unsaid(name: str, tmp_path: Path) -> None:
    shards(tmp_path, {name: 6})
    assert len(read_images(tmp_path)) == 6
    (tmp_path / "crate-001.npz").unlink()
    with pytest.raises(ImageDataError, match=r"npz hold 3 pictures, images.json says 6; make the data again with the same settings"):
        read_images(tmp_path)


def test_shards_of_other_makers_have_no_number_to_hold(tmp_path: Path) -> None:
    shards(tmp_path, {"maker": "mine"})
    (tmp_path / "crate-001.npz").unlink()
    assert len(read_images(tmp_path)) == 3
