"""Behaviour cloning of velocities with an MLP: nothing is guaranteed. The plain baseline of contractive policies (arXiv 2412.07544)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.baselines.velocity_field import VelocityFieldConfig, VelocityFieldLearner, VelocityFieldPolicy, restore_policy
from rl_core.bundle import Bundle
from rl_core.models.mlp import initialize_linear


@dataclass(frozen=True, kw_only=True)
class VelocityBCConfig(VelocityFieldConfig):
    """Velocity regression with an MLP."""

    hidden: tuple[int, ...] = (512, 256, 128, 64)
    """Widths of the hidden layers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_least(hidden=1)


class LeakyMLP(nn.Module):
    """Linear layers with leaky ReLU between them.

    Args:
        size: inputs.
        outputs: outputs; as many as inputs if 0.
        hidden: widths of the hidden layers.
        generator: source of the initial weights; the global one if None.
    """

    def __init__(self, size: int, hidden: tuple[int, ...], generator: torch.Generator | None, *, outputs: int = 0) -> None:
        super().__init__()
        sizes = (size, *hidden, outputs or size)
        self.layers = nn.ModuleList()
        for fan_in, fan_out in zip(sizes[:-1], sizes[1:], strict=True):
            layer = nn.Linear(fan_in, fan_out)
            initialize_linear(layer.weight, layer.bias, fan_in=fan_in, fan_out=fan_out, xavier=False, generator=generator)
            self.layers.append(layer)

    def forward(self, y: Tensor) -> Tensor:
        """States (N, n_y) -> velocities (N, n_y)."""
        for layer in self.layers[:-1]:
            y = F.leaky_relu(layer(y))
        velocity: Tensor = self.layers[-1](y)
        return velocity


class VelocityBCLearner(VelocityFieldLearner):
    """See the module."""

    method = "velocity_bc"

    @staticmethod
    def make_field(config: VelocityBCConfig, size: int, generator: torch.Generator | None) -> nn.Module:
        """See `VelocityFieldLearner.make_field`."""
        return LeakyMLP(size, config.hidden, generator)


def policy_from_bundle(bundle: Bundle, device: str = "cpu") -> VelocityFieldPolicy:
    """The policy of a bundle; see `restore_policy`."""
    return restore_policy(VelocityBCLearner, VelocityBCConfig, bundle, device)
