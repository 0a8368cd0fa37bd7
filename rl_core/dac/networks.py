"""DAC's two networks, built from a configuration."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rl_core.dac.config import DACConfig
from rl_core.models import EnsembleMLP
from rl_core.models.diffusion import NoiseMLP, Schedule, vp_schedule


class Critic(nn.Module):
    """H independent action values Q_h(s, a)."""

    def __init__(self, config: DACConfig, observation: int, action: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.net = EnsembleMLP(
            observation + action, 1, config.critic_hidden, heads=config.heads, activation="mish", xavier=True, generator=generator
        )

    def forward(self, observation: Tensor, action: Tensor) -> Tensor:
        """Observations (..., S) and actions (..., A), which broadcast -> values (H, ...)."""
        return self.net(observation, action).squeeze(-1)


def make_actor(config: DACConfig, observation: int, action: int, *, generator: torch.Generator | None = None) -> NoiseMLP:
    """The noise network eps_theta(x_t, s, t)."""
    return NoiseMLP(observation, action, config.actor_hidden, steps=config.diffusion_steps, generator=generator)


def make_schedule(config: DACConfig) -> Schedule:
    """The variance-preserving schedule."""
    return vp_schedule(config.diffusion_steps, beta_min=config.beta_min, beta_max=config.beta_max)
