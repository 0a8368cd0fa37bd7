"""Frames that a detector's own DDPM makes, and the example that writes them."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from robot_bridge.auxiliary.monitoring.manifold import training
from robot_bridge.auxiliary.monitoring.manifold.config import ManifoldConfig
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from robot_bridge.auxiliary.monitoring.manifold.own_frames import make_frames
from robot_bridge.auxiliary.monitoring.manifold.pixels import cut, tone
from robot_bridge.auxiliary.monitoring.manifold.recogniser import AuthenticityRecogniser
from tests.robot_bridge.auxiliary.monitoring.manifold.priors import StandardNormal, real_frames
from tests.robot_bridge.command_line import Cli

ROOT = Path(__file__).parents[5]
TINY = {"side": 8, "width": 8, "levels": 10, "updates": 2, "batch_size": 8}
CONFIG = ManifoldConfig().override(ddpm=TINY, alpha=0.4, noises=2)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("authenticity")
    return training.train(real_frames(objects=14), CONFIG, folder, seed=0, say=lambda text: None).save(folder / "bundle")


def example() -> Any:
    spec = importlib.util.spec_from_file_location("generated_frames", ROOT / "examples/generated_frames.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_frames_have_the_size_and_tone_of_real_ones(bundle: Path) -> None:
    recogniser = detector(bundle)
    real = real_frames(objects=3, seed=5)
    made = make_frames(recogniser, real, 4, 1)
    assert made.shape == real.frames.shape and made.dtype == np.uint8
    of_made, of_real = (tone(cut(frames, 8))[0].numpy() for frames in (made, real.frames))
    assert np.abs(of_made - of_real).max() < 2
    assert np.array_equal(made, make_frames(recogniser, real, 4, 1)) and not np.array_equal(made, make_frames(recogniser, real, 4, 2))
    with pytest.raises(AuthenticityError, match="real frames: frames of 32 x 32 pixels; valid: 16 x 16"):
        make_frames(recogniser, real_frames(side=32), 4, 1)
    other = AuthenticityRecogniser(
        replace(recogniser.scorer, prior=StandardNormal()), recogniser.calibration, shape=(16, 16, 3), side=8, tiles=1
    )
    with pytest.raises(AuthenticityError, match="valid: one with a DDPM"):
        make_frames(other, real, 4, 1)


def detector(bundle: Path) -> AuthenticityRecogniser:
    from robot_bridge.dataset_authenticity import read_detector

    return read_detector(bundle).recogniser


def test_the_example_writes_what_eval_reads(cli: Cli, bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = real_frames(objects=6, seed=7)
    for index, frame in enumerate(data.frames):
        place = tmp_path / "data" / data.classes[data.labels[index]] / f"{data.instances[index]}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(frame).save(place / f"{index}.png")
    example().main(bundle=bundle, data=tmp_path / "data", out=tmp_path / "frames", frames=20)
    outcome = cli("aux", "eval", "manifold", "--bundle", bundle, "--data", tmp_path / "frames", "--json")
    figures = outcome.figures
    assert outcome.status == 0 and (figures["real_frames"], figures["generated_frames"]) == (20, 20)
    assert {"false_positive_rate", "detected", "auroc", "average_precision", "accuracy"} <= figures.keys()
    with pytest.raises(Exception, match="exists already; valid: a new folder"):
        example().main(bundle=bundle, data=tmp_path / "data", out=tmp_path / "frames")
