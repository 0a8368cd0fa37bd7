from pathlib import Path

import numpy as np
import pytest

from robot_bridge.auxiliary import parts_data
from robot_bridge.auxiliary.image_data import ImageDataError
from robot_bridge.auxiliary.image_files import read_images
from robot_bridge.auxiliary.parts_data import make
from sim_envs.parts.catalogue import NAMES
from sim_envs.parts.factors import PartsError
from sim_envs.parts.pictures import Pictures

CLASSES = ("mug", "hex nut")


def drawn(seed: int, crate: int, wanted: list[tuple[int, int]], *, size: int, done, **_: object) -> Pictures:
    """Pictures without a renderer: their first pixel tells crate, class and number."""
    count = len(wanted)
    frames = np.zeros((count, size, size, 3), np.uint8)
    frames[:, 0, 0] = [(crate, label, number) for label, number in wanted]
    labels = np.array([label for label, _ in wanted])
    return Pictures(
        frames=frames, labels=labels, instances=labels + 100 * (crate + 1000 * seed), captions=("a part.",) * count,
        masks=np.ones((count, size, size), np.uint8), factors={"defect": np.full(count, "")},
    )  # fmt: skip


@pytest.fixture
def without_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_data, "draw_crate", drawn)


def test_pictures_are_shared_out_among_classes_and_objects(without_renderer: None, tmp_path: Path) -> None:
    said: list[str] = []
    figures = make(tmp_path / "parts", images=101, size=32, classes=CLASSES, say=said.append)
    found = read_images(tmp_path / "parts")
    assert figures["images"] == figures["images/drawn"] == len(found) == 101
    assert found.classes == CLASSES and np.bincount(found.labels).tolist() == [51, 50]
    assert np.bincount(np.unique(found.instances) % 100)[[NAMES.index(name) for name in CLASSES]].tolist() == [24, 24]
    first = found.frames[:, 0, 0]
    assert len({tuple(pixel) for pixel in first.tolist()}) == 101
    assert [NAMES.index(CLASSES[label]) for label in found.labels] == first[:, 1].tolist()
    assert "101 pictures of 2 classes, 101 drawn" in said[0]


def test_an_interrupted_run_keeps_finished_shards(without_renderer: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(seed: int, crate: int, wanted: list[tuple[int, int]], **settings) -> Pictures:
        if crate == 3:
            raise KeyboardInterrupt
        return drawn(seed, crate, wanted, **settings)

    make(tmp_path / "whole", images=48, size=32, classes=CLASSES, say=lambda text: None)
    monkeypatch.setattr(parts_data, "draw_crate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "parts", images=48, size=32, classes=CLASSES)
    assert len(list((tmp_path / "parts").glob("*.npz"))) == 3 and not list((tmp_path / "parts").glob("*.part"))
    monkeypatch.setattr(parts_data, "draw_crate", drawn)
    figures = make(tmp_path / "parts", images=48, size=32, classes=CLASSES, say=lambda text: None)
    assert figures["images/drawn"] == 42
    assert make(tmp_path / "parts", images=48, size=32, classes=CLASSES, say=lambda text: None)["images/drawn"] == 0
    np.testing.assert_array_equal(read_images(tmp_path / "parts").frames, read_images(tmp_path / "whole").frames)


def test_other_settings_want_another_folder(without_renderer: None, tmp_path: Path) -> None:
    make(tmp_path / "parts", images=4, size=32, classes=CLASSES, say=lambda text: None)
    with pytest.raises(ImageDataError, match="valid: equal settings, or a new folder"):
        make(tmp_path / "parts", images=4, size=32, classes=CLASSES, seed=1)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(ImageDataError, match="holds something else"):
        make(tmp_path / "other", images=4, classes=CLASSES)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"images": 19}, "images = 19 for 20 classes; valid: at least one a class"),
        ({"size": 16}, "valid: 32..512 pixels"),
        ({"shift": "fog"}, "shift 'fog'; valid: none, light"),
        ({"defects": 1.5}, "valid: a share, 0..1"),
        ({"classes": ("mug", "cup")}, r"\['cup'\]; valid: bottle"),
        ({"classes": ("mug",)}, "fewer than two"),
        ({"processes": 0}, "processes = 0; valid: 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(PartsError, match=message):
        make(tmp_path / "parts", **settings)
    assert not (tmp_path / "parts").exists()


def test_real_pictures_lie_in_a_shard(tmp_path: Path) -> None:
    pytest.importorskip("robosuite", reason="its meshes are used")
    from sim_envs.arm.rendering import RenderingUnavailable

    try:
        make(tmp_path / "parts", images=2, size=32, classes=CLASSES, defects=1.0, say=lambda text: None)
    except RenderingUnavailable as error:
        pytest.skip(str(error).splitlines()[0])
    found = read_images(tmp_path / "parts")
    assert found.captions[0].startswith("a") and found.segmentation is not None and (found.segmentation == 1).any(axis=(1, 2)).all()
    assert {"azimuth_deg", "tint", "colour", "defect", "beside", "table"} <= set(found.factors)
    assert found.factors["tint"].shape == (2, 3)
