"""Priors that are known in closed form, and frames to judge."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from robot_bridge.auxiliary.image_data import ImageData


class StandardNormal:
    """The prior N(0, I): the exact denoiser is h = sqrt(alpha) x~. Crops are read as numbers around 0 of deviation about 1."""

    def __init__(self, side: int = 8, d_feat: int | None = None) -> None:
        self.size = 3 * side**2
        self.d_feat = self.size if d_feat is None else d_feat
        self.alphas = torch.linspace(0, 1, 101)[:100]

    def encode(self, crops: NDArray[np.uint8]) -> Tensor:
        return (torch.from_numpy(crops).flatten(1).float() - 128) / 32

    def noise(self, x: Tensor, step: int) -> Tensor:
        return self.alphas[step].sqrt() * x

    def embed(self, samples: Tensor, predicted: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return samples, predicted, noise


def scaled_crops(scales: tuple[float, ...], side: int = 8) -> NDArray[np.uint8]:
    """Crops that `StandardNormal` reads as the same direction at norm scale * sqrt(d)."""
    drawn = np.random.default_rng(0).standard_normal((side, side, 3))
    drawn *= (drawn.size / (drawn**2).sum()) ** 0.5
    return np.stack([(128 + 32 * scale * drawn).round().clip(0, 255) for scale in scales]).astype(np.uint8)


def real_frames(objects: int = 10, each: int = 4, side: int = 16, seed: int = 0) -> ImageData:
    """Frames of two classes: a smooth background and fine grain, in many tones; a few of each object."""
    generator, count = np.random.default_rng(seed), 2 * objects * each
    ramp = np.linspace(-1, 1, side)
    turn = generator.uniform(0, 2 * np.pi, (count, 1, 1, 1))
    smooth = np.cos(turn) * ramp[None, :, None, None] + np.sin(turn) * ramp[None, None, :, None]
    picture = smooth + 0.5 * generator.standard_normal((count, side, side, 3))
    tones = generator.uniform(90, 160, (count, 1, 1, 1)), generator.uniform(15, 40, (count, 1, 1, 1))
    return ImageData(
        frames=(tones[0] + tones[1] * picture).clip(0, 255).astype(np.uint8),
        labels=np.repeat(np.arange(2), objects * each),
        classes=("bolt", "nut"),
        instances=np.repeat(np.arange(2 * objects), each),
    )


def flat_frames(count: int, side: int = 16, seed: int = 1) -> NDArray[np.uint8]:
    """What a poor generator makes: hardly any contrast."""
    levels = np.random.default_rng(seed).uniform(90, 160, (count, 1, 1, 1))
    return (levels + np.random.default_rng(seed).normal(0, 3, (count, side, side, 3))).clip(0, 255).astype(np.uint8)
