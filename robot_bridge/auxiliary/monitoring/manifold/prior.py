"""What the criterion asks of a diffusion model: noise levels, predicted noise, and the space in which angles are taken."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


class Prior(Protocol):
    """A frozen diffusion model.

    Attributes:
        size: d, numbers of a clean sample.
        d_feat: dimension of the vectors of `embed`; the criterion's bias term scales with its root.
        alphas: (T + 1,) share of noise in a sample at step t: x_t = sqrt(1 - alpha_t) x_0 + sqrt(alpha_t) noise.
    """

    size: int
    d_feat: int
    alphas: Tensor

    def encode(self, crops: NDArray[np.uint8]) -> Tensor:
        """Crops (n, side, side, 3) as clean samples (n, d)."""
        ...

    def noise(self, x: Tensor, step: int) -> Tensor:
        """The noise (n, d) that the model sees in samples (n, d) at that step, 1 or more."""
        ...

    def embed(self, samples: Tensor, predicted: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Clean samples (n, d), predicted noise (n, d) and noise (s, d) as vectors of d_feat numbers, between which angles are taken.

        In pixel space they are what they were.
        """
        ...
