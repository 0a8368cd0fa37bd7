"""Embedding of the diffusion step: fixed sinusoids and a small learned network."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from rl_core.models.mlp import MLP


def sinusoids(t: Tensor, size: int = 16) -> Tensor:
    """cos and sin of `t * exp(-k ln(10000) / (size/2 - 1))`, k = 0 .. size/2 - 1: (...) -> (..., size)."""
    half = size // 2
    frequencies = torch.exp(torch.arange(half, device=t.device, dtype=torch.float32) * (-math.log(10_000.0) / (half - 1)))
    angles = t.to(torch.float32).unsqueeze(-1) * frequencies
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


class TimeEmbedding(nn.Module):
    """Sinusoids of the step followed by an MLP `features -> size -> size`, Mish between."""

    def __init__(self, size: int = 32, *, features: int = 16, xavier: bool = True, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.size = size
        self.features = features
        self.net = MLP(features, size, (size,), activation="mish", xavier=xavier, generator=generator)

    def forward(self, t: Tensor) -> Tensor:
        """(...) step numbers -> (..., size)."""
        return self.net(sinusoids(t, self.features))
