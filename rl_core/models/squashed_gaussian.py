"""The stochastic actor of SAC: a Gaussian whose samples are squashed into [-1, 1] by tanh (arXiv 1812.05905, appendix C)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.models.mlp import MLP


class SquashedGaussian(nn.Module):
    """pi(a | x): a = tanh(mean(x) + std(x) * noise).

    Args:
        inputs: size of x.
        outputs: size of an action.
        hidden: widths of the hidden layers.
        log_std: bounds that log std is clipped to.
        activation, generator: as in `MLP`.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        hidden: Sequence[int],
        *,
        log_std: tuple[float, float] = (-20.0, 2.0),
        activation: str = "relu",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.net = MLP(inputs, 2 * outputs, hidden, activation=activation, generator=generator)
        self.outputs = outputs
        self.log_std = log_std

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(..., inputs) -> mean and log std of the Gaussian before tanh, (..., outputs) each."""
        mean, log_std = self.net(x).chunk(2, dim=-1)
        return mean, log_std.clamp(*self.log_std)

    def mode(self, x: Tensor) -> Tensor:
        """The deterministic action tanh(mean(x))."""
        return torch.tanh(self.net(x)[..., : self.outputs])

    def sample(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """x (..., inputs), standard normal noise (..., outputs) -> action, and log pi(action | x) (...)."""
        mean, log_std = self(x)
        raw = mean + log_std.exp() * noise
        gaussian = -0.5 * noise.square() - log_std - 0.5 * math.log(2.0 * math.pi)
        # log(1 - tanh(u)^2), without the rounding of tanh near 1
        squash = 2.0 * (math.log(2.0) - raw - F.softplus(-2.0 * raw))
        return torch.tanh(raw), (gaussian - squash).sum(-1)
