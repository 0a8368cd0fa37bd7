"""SNDS, stable neural dynamics (Kolter and Manek, "Learning Stable Deep Dynamics Models", arXiv 2001.06116), as a baseline.

    f(y) = f^(y) - grad V(y) relu(grad V(y)' f^(y)) / |grad V(y)|^2,     V(y) = relu(g(y) - g(0)) + eps |y|^2

f^ is an MLP, g an input-convex network. V never rises along f, so every motion stays bounded and comes to rest where V does.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.baselines.velocity_bc import LeakyMLP
from rl_core.baselines.velocity_field import VelocityFieldConfig, VelocityFieldLearner, VelocityFieldPolicy, restore_policy
from rl_core.bundle import Bundle
from rl_core.models.mlp import initialize_linear


@dataclass(frozen=True, kw_only=True)
class SNDSConfig(VelocityFieldConfig):
    """Stable neural dynamics."""

    hidden: tuple[int, ...] = (256, 256, 256)
    """Widths of f^'s hidden layers."""
    convex_hidden: tuple[int, ...] = (64, 64)
    """Widths of the convex network's hidden layers."""
    epsilon: float = 0.01
    """Weight of |y|^2 in V."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_least(hidden=1, convex_hidden=1)
        self.require_above_zero("epsilon")


class LyapunovFunction(nn.Module):
    """V: the convex network takes y at every layer; weights from layer to layer are made positive, its activation is softplus."""

    def __init__(self, size: int, hidden: tuple[int, ...], epsilon: float, generator: torch.Generator | None) -> None:
        super().__init__()
        self.epsilon = epsilon
        widths = (*hidden, 1)
        self.direct = nn.ModuleList(nn.Linear(size, width) for width in widths)
        self.onward = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths[:-1], widths[1:], strict=True))
        for layer in (*self.direct, *self.onward):
            assert isinstance(layer, nn.Linear)
            fans = {"fan_in": layer.in_features, "fan_out": layer.out_features}
            initialize_linear(layer.weight, layer.bias, **fans, xavier=False, generator=generator)

    def _convex(self, y: Tensor) -> Tensor:
        hidden = F.softplus(self.direct[0](y))
        for index, (direct, onward) in enumerate(zip(self.direct[1:], self.onward, strict=True)):
            assert isinstance(onward, nn.Linear)
            hidden = F.linear(hidden, F.softplus(onward.weight) / onward.in_features, onward.bias) + direct(y)
            if index < len(self.onward) - 1:
                hidden = F.softplus(hidden)
        return hidden.squeeze(-1)

    def forward(self, y: Tensor) -> Tensor:
        """(N, n_y) -> (N,), 0 at y = 0 and above it elsewhere."""
        return F.relu(self._convex(y) - self._convex(torch.zeros_like(y[:1]))) + self.epsilon * y.square().sum(-1)


class StableField(nn.Module):
    """f; see the module."""

    def __init__(self, config: SNDSConfig, size: int, generator: torch.Generator | None) -> None:
        super().__init__()
        self.nominal = LeakyMLP(size, config.hidden, generator)
        self.lyapunov = LyapunovFunction(size, config.convex_hidden, config.epsilon, generator)

    def forward(self, y: Tensor) -> Tensor:
        """States (N, n_y) -> velocities (N, n_y)."""
        training = torch.is_grad_enabled()
        with torch.enable_grad():
            point = y.detach().requires_grad_()
            (slope,) = torch.autograd.grad(self.lyapunov(point).sum(), point, create_graph=training)
        velocity: Tensor = self.nominal(y)
        rise = F.relu((slope * velocity).sum(-1, keepdim=True))
        return velocity - slope * rise / slope.square().sum(-1, keepdim=True).clamp_min(1e-12)


class SNDSLearner(VelocityFieldLearner):
    """See the module."""

    method = "snds"

    @staticmethod
    def make_field(config: SNDSConfig, size: int, generator: torch.Generator | None) -> nn.Module:
        """See `VelocityFieldLearner.make_field`."""
        return StableField(config, size, generator)


def policy_from_bundle(bundle: Bundle, device: str = "cpu") -> VelocityFieldPolicy:
    """The policy of a bundle; see `restore_policy`."""
    return restore_policy(SNDSLearner, SNDSConfig, bundle, device)
