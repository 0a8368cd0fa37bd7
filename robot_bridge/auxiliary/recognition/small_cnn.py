"""The small convolutional classifier that is trained against an adversary from scratch."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F


class SmallCNN(nn.Module):
    """Three convolutions of stride 2 and two linear layers; no normalisation layer: attacked images would shift it.

    Args:
        classes: number of logits.
        width: channels of the first convolution; the others have twice and four times as many.
    """

    def __init__(self, classes: int, width: int = 16) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(3, width, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * width, 4 * width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(64 * width, 128), nn.ReLU(), nn.Linear(128, classes))

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N, C) of images (N, 3, side, side) in [0, 1]."""
        return self.head(self.convolutions(images))


def pixels(frames: NDArray[np.uint8], side: int) -> Tensor:
    """Frames (n, H, W, 3) as images (n, 3, side, side) in [0, 1]."""
    images = torch.from_numpy(np.ascontiguousarray(frames)).permute(0, 3, 1, 2).float() / 255
    return F.interpolate(images, size=(side, side), mode="area") if images.shape[-2:] != (side, side) else images
