"""Running mean and variance of a stream of numbers."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class RunningMoments(nn.Module):
    """Mean and population variance of all numbers seen, by Chan's parallel update; float64, saved with the weights.

    Before the first batch the mean is 0 and the variance 1.

    Args:
        window: batches that the past weighs at most, so that it fades; 0 = all of it counts alike.
    """

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, window: int = 0) -> None:
        super().__init__()
        self.window = window
        for name, value in (("mean", 0.0), ("variance", 1.0), ("count", 0.0)):
            self.register_buffer(name, torch.tensor(value, dtype=torch.float64))

    @torch.no_grad()
    def update(self, values: Tensor) -> None:
        """Takes (n,) further numbers in."""
        values = values.double()
        n = float(values.numel())
        total = self.count + n
        shift = values.mean() - self.mean
        squares = self.variance * self.count + values.var(correction=0) * n + shift.square() * self.count * n / total
        self.mean += shift * n / total
        self.variance.copy_(squares / total)
        self.count.copy_(total.clamp(max=self.window * n) if self.window else total)
