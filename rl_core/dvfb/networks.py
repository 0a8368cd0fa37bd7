"""DVFB's networks: actor, F, B and the exploration critic, all orthogonal with zero bias."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from rl_core.dvfb.skills import on_sphere
from rl_core.models import EnsembleMLP

HEADS = 2


class Sizes(Protocol):
    """What a configuration says of actor and critics."""

    @property
    def z_dim(self) -> int:
        """Size of z."""
        ...

    @property
    def hidden(self) -> int:
        """Width of hidden layers."""
        ...

    @property
    def feature(self) -> int:
        """Width of the trunks' outputs."""
        ...


class Trunk(nn.Sequential):
    """Linear, LayerNorm, Tanh, Linear, ReLU: (..., inputs) -> (..., feature)."""

    def __init__(self, inputs: int, hidden: int, feature: int) -> None:
        super().__init__(nn.Linear(inputs, hidden), nn.LayerNorm(hidden), nn.Tanh(), nn.Linear(hidden, feature), nn.ReLU())


class Actor(nn.Module):
    """pi(s, z): the mean action in [-1, 1]."""

    def __init__(self, config: Sizes, observation: int, action: int) -> None:
        super().__init__()
        hidden, feature = config.hidden, config.feature
        self.skill_size = config.z_dim
        self.state = Trunk(observation, hidden, feature)
        self.skilled = Trunk(observation + config.z_dim, hidden, feature)
        self.head = nn.Sequential(nn.Linear(2 * feature, hidden), nn.ReLU(), nn.Linear(hidden, action), nn.Tanh())

    def forward(self, observation: Tensor, skill: Tensor) -> Tensor:
        """(n, S), (n, d) -> (n, A)."""
        return self.head(torch.cat([self.state(observation), self.skilled(torch.cat([observation, skill], -1))], -1))


class ForwardNet(nn.Module):
    """F(s, z, a), two heads on shared inputs."""

    def __init__(self, config: Sizes, observation: int, action: int) -> None:
        super().__init__()
        hidden, feature = config.hidden, config.feature
        self.acted = Trunk(observation + action, hidden, feature)
        self.skilled = Trunk(observation + config.z_dim, hidden, feature)
        self.heads = EnsembleMLP(2 * feature, config.z_dim, (hidden,), heads=HEADS, activation="relu")

    def forward(self, observation: Tensor, skill: Tensor, action: Tensor) -> Tensor:
        """(n, S), (n, d), (n, A) -> (2, n, d)."""
        acted, skilled = self.acted(torch.cat([observation, action], -1)), self.skilled(torch.cat([observation, skill], -1))
        return self.heads(torch.cat([acted, skilled], -1))


class BackwardNet(nn.Module):
    """B(g), of norm sqrt(d); of g it sees `columns` alone, if there are any."""

    def __init__(self, goal: int, hidden: int, size: int, columns: Sequence[int] = ()) -> None:
        super().__init__()
        self._columns = list(columns)
        self.net = nn.Sequential(Trunk(len(self._columns) or goal, hidden, hidden), nn.Linear(hidden, size))

    def forward(self, goal: Tensor) -> Tensor:
        """(n, G) -> (n, d)."""
        return on_sphere(self.net(goal[..., self._columns] if self._columns else goal))


class Critic(nn.Module):
    """Q(s, z, a), two heads on one trunk."""

    def __init__(self, config: Sizes, observation: int, action: int) -> None:
        super().__init__()
        hidden = config.hidden
        self.trunk = nn.Sequential(nn.Linear(observation + config.z_dim + action, hidden), nn.LayerNorm(hidden), nn.Tanh())
        self.heads = EnsembleMLP(hidden, 1, (hidden,), heads=HEADS, activation="relu")

    def forward(self, observation: Tensor, skill: Tensor, action: Tensor) -> Tensor:
        """(n, S), (n, d), (n, A) -> (2, n)."""
        return self.heads(self.trunk(torch.cat([observation, skill, action], -1))).squeeze(-1)


def orthogonal(module: nn.Module, generator: torch.Generator) -> nn.Module:
    """`module` with orthogonal weights and zero biases, heads of an ensemble independent; LayerNorms stay as they are."""
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.orthogonal_(part.weight, generator=generator)
            nn.init.zeros_(part.bias)
        elif isinstance(part, EnsembleMLP):
            for weight, bias in zip(part.weights, part.biases, strict=True):
                for head in weight:
                    nn.init.orthogonal_(head, generator=generator)
                nn.init.zeros_(bias)
    return module
