"""Exponential moving average of a network's parameters."""

from __future__ import annotations

import torch
from torch import nn


@torch.no_grad()
def ema_update(average: nn.Module, online: nn.Module, rate: float) -> None:
    """`average <- (1 - rate) * average + rate * online`, parameter by parameter, in place."""
    torch._foreach_lerp_(list(average.parameters()), list(online.parameters()), rate)
