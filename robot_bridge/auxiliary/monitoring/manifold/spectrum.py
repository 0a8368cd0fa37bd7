"""The Gaussian of equal colours and spectrum: what a denoiser knows before it learns anything, in closed form (Wiener's filter).

With P the mean power of the crops' frequencies (orthonormal FFT, along the three axes of their colours) and a share of noise alpha,

    E[noise | x_t] = sqrt(alpha) / ((1 - alpha) P + alpha)  x_t        at every frequency,

and what it misses has the variance  (1 - alpha) P / ((1 - alpha) P + alpha).
"""

from __future__ import annotations

import torch
from torch import Tensor

from rl_core.models.diffusion import Schedule

_LEAST = 1e-6


class SpectrumPrior:
    """The exact denoiser of that Gaussian.

    Attributes:
        spread: (T + 1,) deviation of what it misses of the noise.

    Args:
        colours: (3, 3), rows are the axes.
        power: (3, side, side), mean power by axis and frequency.
        schedule: noise levels.
    """

    def __init__(self, colours: Tensor, power: Tensor, schedule: Schedule) -> None:
        self.colours, self.power = colours, power
        alpha = (1 - schedule.alpha_bar)[:, None, None, None]
        seen = (1 - alpha) * power.clamp_min(_LEAST)
        self._gain = (alpha.sqrt() / (seen + alpha))[..., : power.shape[2] // 2 + 1]
        self.spread = (seen / (seen + alpha)).mean(dim=(1, 2, 3)).sqrt()

    @classmethod
    def of(cls, images: Tensor, side: int, schedule: Schedule) -> SpectrumPrior:
        """That of images (n, 3 side^2) whose mean is 0."""
        pixels = images.unflatten(1, (3, side, side))
        _, axes = torch.linalg.eigh(torch.einsum("ncij,nkij->ck", pixels, pixels).double() / images.numel())
        colours = axes.T.float().contiguous()
        turned = torch.einsum("kc,ncij->nkij", colours, pixels)
        return cls(colours, torch.fft.fft2(turned, norm="ortho").abs().square().mean(dim=0), schedule)

    def noise(self, x: Tensor, t: Tensor | int) -> Tensor:
        """The noise (n, d) that it sees in samples (n, d) at a step or at steps (n,)."""
        side = self.power.shape[1]
        turned = torch.einsum("kc,ncij->nkij", self.colours, x.unflatten(1, (3, side, side)))
        found = torch.fft.irfft2(torch.fft.rfft2(turned) * self._gain[t], s=(side, side))
        return torch.einsum("kc,nkij->ncij", self.colours, found).flatten(1)
