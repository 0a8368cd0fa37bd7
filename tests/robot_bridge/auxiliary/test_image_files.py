import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from robot_bridge.auxiliary.image_data import ImageData, ImageDataError
from robot_bridge.auxiliary.image_files import read_images, write_header, write_shard
from tests.robot_bridge.auxiliary.test_image_data import data


def save(file: Path, colour: tuple[int, int, int], size: tuple[int, int] = (40, 30)) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(file)


def equal(one: ImageData, other: ImageData) -> bool:
    arrays = all((getattr(one, name) == getattr(other, name)).all() for name in ("frames", "labels", "instances", "segmentation"))
    factors = one.factors.keys() == other.factors.keys() and all((one.factors[name] == other.factors[name]).all() for name in one.factors)
    return arrays and factors and one.captions == other.captions and one.classes == other.classes


def test_shards_give_back_what_was_written(tmp_path: Path) -> None:
    whole = data()
    write_header(tmp_path, whole.classes, {"maker": "a test"})
    write_shard(whole.select(np.arange(35)), tmp_path / "a.npz")
    write_shard(whole.select(np.arange(35, 60)), tmp_path / "b.npz")
    assert equal(read_images(tmp_path), whole)


def test_a_folder_of_pictures_has_a_class_a_folder(tmp_path: Path) -> None:
    save(tmp_path / "hex_nut" / "1.jpg", (255, 0, 0))
    save(tmp_path / "hex_nut" / "2.PNG", (250, 0, 0), (64, 64))
    save(tmp_path / "mug" / "blue one" / "1.png", (0, 0, 255), (20, 50))
    save(tmp_path / "mug" / "blue one" / "2.png", (0, 0, 255), (20, 50))
    save(tmp_path / "mug" / "3.png", (0, 0, 255), (20, 50))
    (tmp_path / "mug" / "notes.txt").write_text("not a picture")
    found = read_images(tmp_path, side=32)
    assert found.classes == ("hex nut", "mug") and found.frames.shape == (5, 32, 32, 3)
    assert found.labels.tolist() == [0, 0, 1, 1, 1]
    assert len(set(found.instances[:2].tolist())) == 2 and len(set(found.instances[2:].tolist())) == 2
    assert found.frames[0, 16, 16, 0] > 240 and found.frames[2, 16, 16, 2] > 240


def test_pictures_are_turned_as_their_camera_says(tmp_path: Path) -> None:
    picture = Image.fromarray(np.repeat(np.array([[0] * 16 + [255] * 16] * 32, np.uint8)[..., None], 3, 2))
    tags = picture.getexif()
    tags[0x0112] = 6  # turned by 90 degrees
    for name in ("mug", "nut"):
        (tmp_path / name).mkdir()
        picture.save(tmp_path / name / "1.jpg", exif=tags)
    frame = read_images(tmp_path, side=32).frames[0]
    assert frame[:12].mean() < 20 and frame[20:].mean() > 235


def test_an_empty_folder_says_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(ImageDataError, match="no class folders; valid: .*CLASS/FILE.jpg with 2 or more classes"):
        read_images(tmp_path)
    with pytest.raises(ImageDataError, match="no such folder"):
        read_images(tmp_path / "nothing")


def test_one_class_only_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "mug" / "1.jpg", (1, 2, 3))
    with pytest.raises(ImageDataError, match="one class, 'mug'"):
        read_images(tmp_path)


def test_a_class_without_pictures_is_named(tmp_path: Path) -> None:
    save(tmp_path / "mug" / "1.jpg", (1, 2, 3))
    (tmp_path / "nut").mkdir()
    with pytest.raises(ImageDataError, match="nut: no pictures"):
        read_images(tmp_path)


@pytest.mark.parametrize("content", [b"", b"no picture at all", "cut"])
def test_an_unreadable_picture_is_named(tmp_path: Path, content: bytes | str) -> None:
    save(tmp_path / "mug" / "1.jpg", (1, 2, 3))
    save(tmp_path / "nut" / "bad.jpg", (1, 2, 3), (200, 200))
    bad = tmp_path / "nut" / "bad.jpg"
    bad.write_bytes(bad.read_bytes()[:300] if isinstance(content, str) else content)
    with pytest.raises(ImageDataError, match="bad.jpg: not a readable picture"):
        read_images(tmp_path)


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    write_header(tmp_path, data().classes, {})
    write_shard(data(), tmp_path / "a.npz")
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-100])
    with pytest.raises(ImageDataError, match="a.npz: not readable.*the other shards are kept"):
        read_images(tmp_path)


def test_a_shard_is_never_unpickled(tmp_path: Path) -> None:
    write_header(tmp_path, data().classes, {})
    with open(tmp_path / "a.npz", "wb") as file:
        np.savez(file, frames=np.array([{"a": 1}], dtype=object), labels=np.zeros(1), instances=np.zeros(1))
    with pytest.raises(ImageDataError, match="a.npz: not readable"):
        read_images(tmp_path)


@pytest.mark.parametrize("text", ["{", json.dumps({"format": "armstack-images"}), json.dumps([1])])
def test_a_header_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "images.json").write_text(text)
    with pytest.raises(ImageDataError, match="images.json: not readable"):
        read_images(tmp_path)


def test_a_header_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "images.json").write_text(json.dumps({"format": "armstack-images", "version": 2, "classes": ["a", "b"]}))
    with pytest.raises(ImageDataError, match=r"this Armstack reads \('armstack-images', 1\)"):
        read_images(tmp_path)
