"""The example that draws where a bundle sees people."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from robot_bridge.auxiliary.monitoring.rfmamba.config import RFMambaConfig
from robot_bridge.auxiliary.monitoring.rfmamba.echoes import Recordings, write_recordings
from robot_bridge.auxiliary.monitoring.rfmamba.recogniser import train

ROOT = Path(__file__).parents[5]


def test_people_are_drawn_where_they_are_and_where_they_were_found(
    recordings: Recordings, tiny: RFMambaConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = train(recordings, tiny, tmp_path / "run", seed=0, say=lambda text: None).save(tmp_path / "bundle")
    write_recordings(recordings, tmp_path / "data", {})
    example = runpy.run_path(str(ROOT / "examples/radar_people.py"))
    example["main"](bundle, tmp_path / "data", tmp_path / "people.png")
    picture = np.asarray(Image.open(tmp_path / "people.png").convert("RGB"))
    assert picture.shape[0] > 900 and len(np.unique(picture.reshape(-1, 3), axis=0)) > 100
    assert f"{len(recordings) * 3} windows, joints " in capsys.readouterr().out


def test_a_strong_echo_stands_at_its_range(recordings: Recordings) -> None:
    example = runpy.run_path(str(ROOT / "examples/radar_people.py"))
    windows = recordings.windows(4, 3)
    metres, frequencies = 1.0, np.array(windows.geometry.frequencies)
    windows.echoes[0] = np.exp(-4j * np.pi * frequencies * metres / 299_792_458.0)
    bins = example["profile"](windows, 0).argmax(axis=-1)
    width = example["radar_range_m"](windows) / len(frequencies)
    assert np.abs(bins * width - metres).max() <= width
