"""SDS-EF, Euclideanizing flows (Rana, Li, Fox, Boots, Ramos, Ratliff, arXiv 2005.13143), as a baseline.

A bijection psi bends space so that demonstrations become straight lines to the goal; the motion is the natural gradient flow there:

    y' = -exp(s(y)) J(y)^-1 (z - z*) / |z - z*|,     z = psi(y), z* = psi(0), J the Jacobian of psi

J^-1 times a direction is the directional derivative of psi^-1, so no Jacobian is formed. The goal is globally asymptotically stable;
nothing is said of how fast two motions approach each other on the way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rl_core.baselines.velocity_bc import LeakyMLP
from rl_core.baselines.velocity_field import VelocityFieldConfig, VelocityFieldLearner, VelocityFieldPolicy, restore_policy
from rl_core.bundle import Bundle

SOFTENING = 1e-2
"""Distance from the goal, in the bent space, within which the flow slows down in proportion."""


@dataclass(frozen=True, kw_only=True)
class SDSEFConfig(VelocityFieldConfig):
    """Euclideanizing flows."""

    blocks: int = 10
    """Coupling layers."""
    features: int = 200
    """Random Fourier features of each scale and shift."""
    length: float = 0.45
    """Length scale of the features."""
    speed_hidden: tuple[int, ...] = (100, 100)
    """Widths of the log-speed network's hidden layers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_least(blocks=1, features=1, speed_hidden=1)
        self.require_above_zero("length")


class FourierCoupling(nn.Module):
    """Coupling layers whose scales and shifts are linear in fixed random Fourier features of the coordinates that are kept."""

    masks: Tensor
    frequencies: Tensor
    phases: Tensor

    def __init__(self, size: int, blocks: int, features: int, length: float, generator: torch.Generator | None) -> None:
        super().__init__()
        self.blocks, self.norm = blocks, math.sqrt(2.0 / features)
        self.register_buffer("frequencies", torch.randn(blocks, size, features, generator=generator) / length)
        self.register_buffer("phases", 2 * math.pi * torch.rand(blocks, features, generator=generator))
        self.weight = nn.Parameter(torch.zeros(blocks, features, 2 * size))
        first = (torch.arange(size) % 2 == 0).float()
        self.register_buffer("masks", torch.stack([first if block % 2 == 0 else 1 - first for block in range(blocks)]), persistent=False)

    def _scale_shift(self, block: int, y: Tensor) -> tuple[Tensor, Tensor]:
        mask = self.masks[block]
        features = self.norm * torch.cos((y * mask) @ self.frequencies[block] + self.phases[block])
        scale, shift = (features @ self.weight[block]).chunk(2, dim=-1)
        return scale * (1 - mask), shift * (1 - mask)

    def forward(self, y: Tensor) -> Tensor:
        """psi: (N, n_y) -> (N, n_y)."""
        for block in range(self.blocks):
            scale, shift = self._scale_shift(block, y)
            y = y * scale.exp() + shift
        return y

    def inverse(self, z: Tensor) -> Tensor:
        """psi^-1."""
        for block in range(self.blocks - 1, -1, -1):
            scale, shift = self._scale_shift(block, z)
            z = (z - shift) * torch.exp(-scale)
        return z


class GradientFlow(nn.Module):
    """The field; see the module."""

    def __init__(self, config: SDSEFConfig, size: int, generator: torch.Generator | None) -> None:
        super().__init__()
        self.bijection = FourierCoupling(size, config.blocks, config.features, config.length, generator)
        self.speed = LeakyMLP(size, config.speed_hidden, generator, outputs=1)

    def forward(self, y: Tensor) -> Tensor:
        """States (N, n_y) -> velocities (N, n_y)."""
        mapped = self.bijection(torch.cat([y, torch.zeros_like(y[:1])]))
        z, goal = mapped[:-1], mapped[-1]
        away = z - goal
        direction = -away / torch.sqrt(away.square().sum(-1, keepdim=True) + SOFTENING**2)
        velocity: Tensor = torch.func.jvp(self.bijection.inverse, (z,), (direction,))[1]
        return torch.exp(self.speed(y)) * velocity


class SDSEFLearner(VelocityFieldLearner):
    """See the module."""

    method = "sds_ef"

    @staticmethod
    def make_field(config: SDSEFConfig, size: int, generator: torch.Generator | None) -> nn.Module:
        """See `VelocityFieldLearner.make_field`."""
        return GradientFlow(config, size, generator)


def policy_from_bundle(bundle: Bundle, device: str = "cpu") -> VelocityFieldPolicy:
    """The policy of a bundle; see `restore_policy`."""
    return restore_policy(SDSEFLearner, SDSEFConfig, bundle, device)
