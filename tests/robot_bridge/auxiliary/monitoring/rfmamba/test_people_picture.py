"""The example that draws where a bundle sees people."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image

from rl_core.errors import ArmstackError
from robot_bridge.auxiliary.bundles import recogniser_bundle
from robot_bridge.auxiliary.monitoring.rfmamba.config import RFMambaConfig
from robot_bridge.auxiliary.monitoring.rfmamba.echoes import Recordings, write_recordings
from robot_bridge.auxiliary.monitoring.rfmamba.recogniser import train

ROOT = Path(__file__).parents[5]


@pytest.fixture(scope="module")
def untaught(recordings: Recordings, tiny: RFMambaConfig, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A bundle that was trained for a moment, and data."""
    folder = tmp_path_factory.mktemp("people")
    write_recordings(recordings, folder / "data", {})
    return train(recordings, tiny, folder / "run", seed=0, say=lambda text: None).save(folder / "bundle"), folder / "data"


def test_people_are_drawn_where_they_are_and_where_they_were_found(
    untaught: tuple[Path, Path], recordings: Recordings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = runpy.run_path(str(ROOT / "examples/radar_people.py"))
    example["main"](*untaught, tmp_path / "new" / "people.png")
    picture = np.asarray(Image.open(tmp_path / "new" / "people.png").convert("RGB"))
    assert picture.shape[0] > 900 and len(np.unique(picture.reshape(-1, 3), axis=0)) > 100
    assert f"{len(recordings) * 3} windows, joints " in capsys.readouterr().out


def test_no_legend_covers_a_person(untaught: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    runpy.run_path(str(ROOT / "examples/radar_people.py"))["main"](*untaught, tmp_path / "people.png")
    drawn[0].draw_without_rendering()
    (legend,) = drawn[0].legends
    assert all(axes.get_legend() is None and not axes.get_window_extent().overlaps(legend.get_window_extent()) for axes in drawn[0].axes)


def test_a_strong_echo_stands_at_its_range(recordings: Recordings) -> None:
    example = runpy.run_path(str(ROOT / "examples/radar_people.py"))
    windows = recordings.windows(4, 3)
    metres, frequencies = 1.0, np.array(windows.geometry.frequencies)
    windows.echoes[0] = np.exp(-4j * np.pi * frequencies * metres / 299_792_458.0)
    bins = example["profile"](windows, 0).argmax(axis=-1)
    width = example["radar_range_m"](windows) / len(frequencies)
    assert np.abs(bins * width - metres).max() <= width


@pytest.mark.parametrize(
    ("out", "says"),
    [
        ("people.xyz", r"^--out .*people.xyz: the ending is '.xyz', valid: .png, "),
        ("file/x.png", "^--out .*file is a file, valid: a folder"),
    ],
)
def test_where_no_picture_can_be_written_is_said_first(out: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    example = runpy.run_path(str(ROOT / "examples/radar_people.py"))
    with pytest.raises(ArmstackError, match=says):
        example["main"](tmp_path / "no bundle", tmp_path / "no data", tmp_path / out)


def test_a_bundle_of_another_method_is_named(tiny: RFMambaConfig, tmp_path: Path) -> None:
    other = recogniser_bundle("tempme", tiny, {"w": torch.zeros(1)}, classes=("walking",)).save(tmp_path / "bundle")
    example = runpy.run_path(str(ROOT / "examples/radar_people.py"))
    with pytest.raises(ArmstackError, match="bundle of method 'tempme'.*valid: rfmamba"):
        example["main"](other, tmp_path / "no data", tmp_path / "people.png")
