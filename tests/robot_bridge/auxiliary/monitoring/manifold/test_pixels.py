"""Real and generated frames take one way."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from robot_bridge.auxiliary.monitoring.manifold.pixels import as_crops, cut, put_back, standardise, tone
from tests.robot_bridge.auxiliary.monitoring.manifold.priors import real_frames


def test_the_middle_square_is_averaged_down() -> None:
    frame = np.zeros((1, 8, 12, 3), np.uint8)
    frame[:, :4, 2:6], frame[:, :, :2], frame[:, :, 10:] = 100, 255, 255  # the borders are cut off
    crop = cut(frame, 2)
    assert crop.shape == (1, 2, 2, 3) and crop[0, :, :, 0].tolist() == [[100, 0], [0, 0]]


def test_tiles_come_row_by_row() -> None:
    frames = np.zeros((2, 8, 8, 3), np.uint8)
    frames[0, :4, 4:], frames[0, 4:, :4], frames[1] = 10, 20, 30
    crops = cut(frames, 2, tiles=2)
    assert crops.shape == (8, 2, 2, 3) and crops[:, 0, 0, 0].tolist() == [0, 10, 20, 0, 30, 30, 30, 30]
    assert crops[1].min() == crops[1].max() == 10


def test_frames_are_never_enlarged() -> None:
    with pytest.raises(AuthenticityError, match=r"frames of 8 x 6 pixels; valid: 8 x 8 or more \(2 x 4\)"):
        cut(np.zeros((1, 6, 8, 3), np.uint8), 4, tiles=2)
    assert cut(np.zeros((0, 8, 8, 3), np.uint8), 4).shape == (0, 4, 4, 3)


def test_light_and_contrast_tell_nothing() -> None:
    crops = real_frames().frames
    dim = (crops * 0.5 + 20).round().astype(np.uint8)
    assert torch.allclose(standardise(crops).norm(dim=1), torch.full((len(crops),), 768**0.5), rtol=1e-4)
    assert (standardise(crops) - standardise(dim)).square().mean().sqrt() < 0.05
    assert standardise(np.full((1, 4, 4, 3), 77, np.uint8)).abs().max() == 0


def test_what_is_generated_gets_the_tone_of_real_crops() -> None:
    like = real_frames(each=1).frames
    images = 0.3 * torch.randn(len(like), 768, generator=torch.Generator().manual_seed(0)) + 2
    made = as_crops(images, like)
    assert made.dtype == np.uint8 and made.shape == like.shape
    for ours, theirs in zip(tone(made), tone(like), strict=True):
        assert torch.allclose(ours, theirs, rtol=0.02, atol=0.5)
    assert torch.nn.functional.cosine_similarity(standardise(made), images - images.mean(dim=1, keepdim=True)).min() > 0.99


@pytest.mark.parametrize(("height", "width", "tiles"), [(32, 48, 1), (32, 32, 2), (48, 32, 2)])
def test_what_is_put_back_is_cut_out_again(height: int, width: int, tiles: int) -> None:
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (3, height, width, 3), dtype=np.uint8)
    crops = rng.integers(0, 256, (3 * tiles**2, 8, 8, 3), dtype=np.uint8)
    found = put_back(crops, frames, tiles)
    assert np.array_equal(cut(found, 8, tiles), crops)
    edge = (max(height, width) - min(height, width)) // 2
    around = (found[:, :edge], frames[:, :edge]) if height > width else (found[:, :, :edge], frames[:, :, :edge])
    assert np.array_equal(*around) and not np.array_equal(found, frames)
    assert cut(put_back(crops, frames[:, :27, :27], tiles), 8, tiles).shape == crops.shape  # no multiple of the crops' pixels
