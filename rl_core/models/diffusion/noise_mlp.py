"""Noise network for vectors: an MLP over condition, noisy sample and time embedding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.models.mish import mish
from rl_core.models.mlp import MLP
from rl_core.models.time_embedding import TimeEmbedding, sinusoids

Denoiser = Callable[[Tensor, Tensor | int], Tensor]


class NoiseMLP(nn.Module):
    """eps(x_t, t, condition) = MLP(concat(condition, x_t, time embedding)), Mish, Xavier-uniform, linear output.

    Args:
        condition: size of the condition (the observation); 0 for none.
        sample: size D of the sample (the action).
        hidden: widths of the hidden layers.
        steps: T; times are 0 .. T.
        generator: source of the initial weights.
    """

    sinusoids: Tensor

    def __init__(
        self,
        condition: int,
        sample: int,
        hidden: Sequence[int],
        *,
        steps: int,
        time_size: int = 32,
        time_features: int = 16,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.sizes = (condition, sample, time_size)
        self.steps = steps
        self.time = TimeEmbedding(time_size, features=time_features, generator=generator)
        self.net = MLP(sum(self.sizes), sample, hidden, activation="mish", xavier=True, generator=generator)
        self.register_buffer("sinusoids", sinusoids(torch.arange(steps + 1), time_features), persistent=False)

    def denoiser(self, condition: Tensor) -> Denoiser:
        """The network with its condition (..., C) put in: `(x_t (..., D), t) -> noise (..., D)`, t a step or a tensor (...).

        The first layer's share of the condition and of all time embeddings is computed here, once for a whole chain. Leading
        dimensions of condition and x_t broadcast: a condition (B, 1, C) serves N samples (B, N, D).
        """
        first, *others = self.net.layers
        assert isinstance(first, nn.Linear)
        of_condition, of_sample, of_time = first.weight.split(self.sizes, dim=1)
        base = F.linear(condition, of_condition, first.bias)
        times = F.linear(self.time.net(self.sinusoids), of_time)

        def predict(x: Tensor, t: Tensor | int) -> Tensor:
            hidden = base + F.linear(x, of_sample) + times[t]
            for layer in others:
                hidden = layer(mish(hidden))
            return hidden

        return predict

    def forward(self, x: Tensor, t: Tensor | int, condition: Tensor) -> Tensor:
        """Noisy samples (..., D), steps (...), conditions (..., C) -> predicted noise (..., D)."""
        return self.denoiser(condition)(x, t)
