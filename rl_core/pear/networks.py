"""The networks of one level, built from a configuration."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rl_core.models import MLP, EnsembleMLP
from rl_core.models.squashed_gaussian import SquashedGaussian
from rl_core.pear.config import PEARConfig


class TwinCritic(nn.Module):
    """Two independent action values Q_h(x, a), x being a scaled state and goal."""

    def __init__(self, config: PEARConfig, inputs: int, action: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.net = EnsembleMLP(inputs + action, 1, config.hidden, heads=2, activation="relu", generator=generator)

    def forward(self, x: Tensor, action: Tensor) -> Tensor:
        """(B, I), (B, A) -> (2, B)."""
        return self.net(x, action).squeeze(-1)


class Discriminator(nn.Module):
    """D(x, a), linear at its end: 1 for demonstrated actions, -1 for the policy's."""

    def __init__(self, config: PEARConfig, inputs: int, action: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.net = MLP(inputs + action, 1, config.hidden, activation="relu", generator=generator)

    def forward(self, x: Tensor, action: Tensor) -> Tensor:
        """(B, I), (B, A) -> (B,)."""
        return self.net(torch.cat([x, action], dim=-1)).squeeze(-1)


def make_actor(config: PEARConfig, inputs: int, action: int, *, generator: torch.Generator | None = None) -> SquashedGaussian:
    """The stochastic actor of a level."""
    return SquashedGaussian(inputs, action, config.hidden, generator=generator)
