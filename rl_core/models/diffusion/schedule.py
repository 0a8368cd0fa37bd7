"""Noise schedules. Index 0 is the clean sample, 1 .. T the noisy ones, so that tables are read with the step itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Schedule:
    """Tables (T + 1,) float32 over steps t = 0 .. T; `x_t = sqrt(alpha_bar_t) x_0 + sqrt(1 - alpha_bar_t) noise`.

    Attributes:
        alpha: alpha_t = 1 - beta_t; alpha_0 = 1.
        alpha_bar: product of alpha_1 .. alpha_t; alpha_bar_0 = 1.
    """

    alpha: Tensor
    alpha_bar: Tensor
    beta: Tensor
    signal: Tensor
    noise: Tensor

    @classmethod
    def from_alphas(cls, alphas: Tensor) -> Schedule:
        """Tables from alpha_1 .. alpha_T (T,), computed in float64."""
        alpha = torch.cat([torch.ones(1, dtype=torch.float64), alphas.to(torch.float64)])
        alpha_bar = alpha.cumprod(0)
        tables = (alpha, alpha_bar, 1.0 - alpha, alpha_bar.sqrt(), (1.0 - alpha_bar).sqrt())
        return cls(*(table.to(torch.float32) for table in tables))

    @property
    def steps(self) -> int:
        """T."""
        return len(self.alpha) - 1

    def to(self, device: torch.device | str) -> Schedule:
        """The same tables on `device`."""
        return Schedule(*(table.to(device) for table in (self.alpha, self.alpha_bar, self.beta, self.signal, self.noise)))


def vp_schedule(steps: int, *, beta_min: float = 0.1, beta_max: float = 10.0) -> Schedule:
    """Variance-preserving: alpha_t = exp(-beta_min/T - (beta_max - beta_min)(2t - 1)/(2 T^2)) (arXiv 2112.07804, DDGAN)."""
    t = torch.arange(1, steps + 1, dtype=torch.float64)
    return Schedule.from_alphas(torch.exp(-beta_min / steps - 0.5 * (beta_max - beta_min) * (2 * t - 1) / steps**2))


def cosine_schedule(steps: int, *, offset: float = 0.008, max_beta: float = 0.999) -> Schedule:
    """alpha_bar_t = cos^2((t/T + s)/(1 + s) pi/2) / alpha_bar_0, beta clipped at 0.999 (arXiv 2102.09672 eq. 17)."""
    t = torch.arange(steps + 1, dtype=torch.float64) / steps
    alpha_bar = torch.cos((t + offset) / (1 + offset) * math.pi / 2) ** 2
    return Schedule.from_alphas((alpha_bar[1:] / alpha_bar[:-1]).clamp(min=1.0 - max_beta))
