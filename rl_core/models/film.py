"""An image encoder that is told what to look for: ResNet-18 with FiLM, and a spatial softmax that gives key points.

    FiLM(x | l) = (1 + gamma(l)) * x + beta(l)                              (arXiv 1709.07871, eq. 2)
    key point of map c: E_{(u, v) ~ softmax(x_c)} [(u, v)], in [-1, 1]^2    (arXiv 1504.00702, eq. 6)

The residual net is ResNet-18's (arXiv 1512.03385) with group norm in place of batch norm, so that a picture's features depend on that
picture alone, whatever batch it came in.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

STRIDE = 32
"""Pixels of a picture that a place of ResNet-18's last maps stands for, each way."""

_GROUPS = 8


def _norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(min(_GROUPS, channels), channels)


class FiLM(nn.Module):
    """Scales and shifts feature maps by a condition; does nothing at first, since its layer starts at zero."""

    def __init__(self, condition: int, channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(condition, 2 * channels)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, maps: Tensor, condition: Tensor) -> Tensor:
        """(N, C, H, W), (N, condition) -> (N, C, H, W)."""
        gamma, beta = self.linear(condition)[..., None, None].chunk(2, dim=1)
        return (1 + gamma) * maps + beta


class FiLMBlock(nn.Module):
    """ResNet's basic block, modulated before its last activation."""

    def __init__(self, inputs: int, outputs: int, stride: int, condition: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.first_norm = _norm(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.second_norm = _norm(outputs)
        self.film = FiLM(condition, outputs)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), _norm(outputs))

    def forward(self, maps: Tensor, condition: Tensor) -> Tensor:
        """(N, inputs, H, W), (N, condition) -> (N, outputs, H / stride, W / stride)."""
        x = torch.relu(self.first_norm(self.first(maps)))
        x = self.film(self.second_norm(self.second(x)), condition)
        return torch.relu(x + self.shortcut(maps))


class SpatialSoftmax(nn.Module):
    """Feature maps -> expected positions: a 1x1 convolution to one map a key point, and the softmax over each."""

    def __init__(self, channels: int, keypoints: int) -> None:
        super().__init__()
        self.maps = nn.Conv2d(channels, keypoints, 1)

    def forward(self, features: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, 2 keypoints): all u (along the width), then all v, in [-1, 1]."""
        maps = self.maps(features)
        height, width = maps.shape[-2:]
        weights = maps.flatten(2).softmax(-1).unflatten(-1, (height, width))
        u = torch.linspace(-1.0, 1.0, width, device=maps.device)
        v = torch.linspace(-1.0, 1.0, height, device=maps.device)
        return torch.cat([(weights.sum(2) * u).sum(-1), (weights.sum(3) * v).sum(-1)], dim=1)


class FiLMResNet18(nn.Module):
    """Pictures and a condition -> key points -> features.

    Args:
        channels: of a picture, 3 or 1.
        condition: size of the condition.
        width: feature maps of the first stage (ResNet-18: 64); the stages have 1, 2, 4 and 8 times as many.
        keypoints: of the spatial softmax.
        outputs: size of the features.
    """

    def __init__(self, channels: int, condition: int, *, width: int = 64, keypoints: int = 32, outputs: int = 64) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(channels, width, 7, 2, 3, bias=False), _norm(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        sizes = [width, width, 2 * width, 4 * width, 8 * width]
        blocks: list[FiLMBlock] = []
        for stage, (inputs, maps) in enumerate(zip(sizes[:-1], sizes[1:], strict=True)):
            blocks += [FiLMBlock(inputs, maps, 2 if stage else 1, condition), FiLMBlock(maps, maps, 1, condition)]
        self.blocks = nn.ModuleList(blocks)
        self.keypoints = SpatialSoftmax(sizes[-1], keypoints)
        self.out = nn.Linear(2 * keypoints, outputs)

    def forward(self, pictures: Tensor, condition: Tensor) -> Tensor:
        """(N, H, W, channels) uint8, (N, condition) -> (N, outputs)."""
        x = self.stem(pictures.movedim(-1, 1).to(condition.dtype) / 255 - 0.5)
        for block in self.blocks:
            x = block(x, condition)
        return self.out(self.keypoints(x))


def crop_size(size: Sequence[int], share: float) -> tuple[int, int]:
    """(height, width) of a crop that keeps `share` of each side, at least a pixel."""
    return max(1, round(size[0] * share)), max(1, round(size[1] * share))


def crop(pictures: Tensor, share: float, generator: torch.Generator | None = None) -> Tensor:
    """Cuts `share` of each side out of pictures (B, K, H, W, C): at one random place a row with `generator`, else from the middle.

    One place for the whole context, so that what moves between its pictures is the scene, not the crop.
    """
    height, width = crop_size(pictures.shape[2:4], share)
    rows, columns = pictures.shape[2] - height, pictures.shape[3] - width
    if generator is None:
        top, left = rows // 2, columns // 2
        return pictures[:, :, top : top + height, left : left + width]
    tops = torch.randint(rows + 1, (len(pictures),), generator=generator).tolist()
    lefts = torch.randint(columns + 1, (len(pictures),), generator=generator).tolist()
    return torch.stack([p[:, t : t + height, x : x + width] for p, t, x in zip(pictures, tops, lefts, strict=True)])
