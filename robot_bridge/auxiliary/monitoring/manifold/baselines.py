"""What the criterion is compared with: RIGID, and image statistics as a check that nothing trivial tells the two kinds apart.

The reconstruction error comes with the criterion's own terms (`criterion.terms`). All numbers are higher for what is taken as generated.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from rl_core.training.seeding import numpy_generator
from robot_bridge.auxiliary.monitoring.manifold.pixels import standardise, tone

Features = Callable[[NDArray[np.uint8]], Tensor]
"""Frames (n, H, W, 3) -> vectors (n, D) of a frozen network."""

_NOISE, _NOISES = 0.05, 3


def rigid(features: Features, crops: NDArray[np.uint8], seed: int = 0) -> Tensor:
    """RIGID (arXiv 2405.20112): 1 - cos(f(x), f(x + noise)), mean over a few noises (n,): generated pictures move further.

    The noise has a deviation of 0.05 of the range, and is the same for all pictures; what is fed to the network is rounded.

    Args:
        features: of a network that was trained on photographs.
        crops: (n, side, side, 3).
        seed: of the noises.
    """
    generator, still = numpy_generator(seed, "rigid"), features(crops)
    moved = torch.zeros(len(crops))
    for _ in range(_NOISES):
        noise = generator.normal(0, 255 * _NOISE, crops.shape[1:])
        shaken = (crops + noise).round().clip(0, 255).astype(np.uint8)
        moved += 1 - F.cosine_similarity(still, features(shaken), dim=1)
    return moved / _NOISES


def contrast(crops: NDArray[np.uint8]) -> Tensor:
    """Minus the deviation of a crop's grey levels (n,): small models make flat pictures."""
    return -tone(crops)[1]


def slope(crops: NDArray[np.uint8]) -> Tensor:
    """Minus the exponent s of the power spectrum ~ frequency^s (n,): smooth pictures have a steep one.

    A line through log power, averaged over rings of equal frequency and over channels, from the second frequency to the last.
    """
    side = crops.shape[1]
    images = standardise(crops).unflatten(1, (3, side, side))
    power = torch.fft.fft2(images).abs().square().mean(dim=1)
    frequency = torch.fft.fftfreq(side, 1 / side)
    ring = torch.hypot(frequency[:, None], frequency[None, :]).round().long().clamp(max=side // 2 + 1).flatten()
    rings = torch.zeros(len(crops), side // 2 + 2).index_add(1, ring, power.flatten(1)) / torch.bincount(ring, minlength=side // 2 + 2)
    place = torch.arange(2, side // 2 + 1).float().log()
    logs = rings[:, 2 : side // 2 + 1].clamp_min(1e-9).log()
    centred = place - place.mean()
    return -(logs @ centred) / centred.square().sum()
