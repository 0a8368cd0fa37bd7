"""RealNVP coupling layers (Dinh, Sohl-Dickstein, Bengio, arXiv 1605.08803): a bijection of R^n with a cheap inverse.

A block with mask m keeps y m and moves the rest:  y -> y exp(s(y m) (1 - m)) + t(y m) (1 - m). Masks alternate over the coordinates
and flip from block to block. The last layers of s and t start at 0, so the bijection starts as the identity.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Coupling(nn.Module):
    """A stack of blocks; with `log_scale` a > 0 the log-scale is clamped smoothly, s -> a tanh(s / a).

    s and t of a block are evaluated together, as a batch of two networks with two tanh layers.

    Args:
        size: n, numbers in a point.
        blocks: how many; 0 = the identity.
        width: of the hidden layers.
        log_scale: largest log-scale of a block; 0 = no clamp.
        generator: source of the initial weights.
    """

    masks: Tensor

    def __init__(self, size: int, blocks: int, width: int, *, log_scale: float, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.size, self.blocks, self.log_scale = size, blocks, log_scale

        def uniform(*shape: int, fan_in: int) -> nn.Parameter:
            bound = 1.0 / math.sqrt(fan_in)
            return nn.Parameter((2.0 * torch.rand(shape, generator=generator) - 1.0) * bound)

        self.w1 = uniform(blocks, 2, size, width, fan_in=size)
        self.b1 = uniform(blocks, 2, 1, width, fan_in=size)
        self.w2 = uniform(blocks, 2, width, width, fan_in=width)
        self.b2 = uniform(blocks, 2, 1, width, fan_in=width)
        self.w3 = nn.Parameter(torch.zeros(blocks, 2, width, size))
        self.b3 = nn.Parameter(torch.zeros(blocks, 2, 1, size))
        first = (torch.arange(size) % 2 == 0).float()
        masks = torch.stack([first if block % 2 == 0 else 1 - first for block in range(blocks)]) if blocks else torch.zeros(0, size)
        self.register_buffer("masks", masks, persistent=False)

    def _scale_shift(self, block: int, kept: Tensor) -> tuple[Tensor, Tensor]:
        """s and t of the moved coordinates, (N, n) each, 0 for the kept ones."""
        both = kept.unsqueeze(0).expand(2, -1, -1)
        hidden = torch.tanh(torch.baddbmm(self.b1[block], both, self.w1[block]))
        hidden = torch.tanh(torch.baddbmm(self.b2[block], hidden, self.w2[block]))
        scale, shift = torch.baddbmm(self.b3[block], hidden, self.w3[block])
        if self.log_scale > 0:
            scale = self.log_scale * torch.tanh(scale / self.log_scale)
        moved = 1.0 - self.masks[block]
        return scale * moved, shift * moved

    def forward(self, z: Tensor) -> Tensor:
        """phi: (N, n) -> (N, n)."""
        for block in range(self.blocks):
            scale, shift = self._scale_shift(block, z * self.masks[block])
            z = torch.addcmul(shift, z, scale.exp())
        return z

    def inverse(self, y: Tensor) -> Tensor:
        """phi^-1: (N, n) -> (N, n)."""
        for block in range(self.blocks - 1, -1, -1):
            scale, shift = self._scale_shift(block, y * self.masks[block])
            y = (y - shift) * torch.exp(-scale)
        return y
