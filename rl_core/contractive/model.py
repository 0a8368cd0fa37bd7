"""The whole map from a start to a motion: lift, latent rollout, read-out, bijection. y = phi(C x) - phi(0); y = 0 is the goal."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rl_core.contractive.config import ContractiveConfig
from rl_core.contractive.coupling import Coupling
from rl_core.contractive.lift import correction, lift, right_inverse
from rl_core.contractive.ren import RENS, STD
from rl_core.models import MLP

HEAD_WIDTH = 32


class ContractiveModel(nn.Module):
    """Latent system, read-out C, bijection, and a head for those action dimensions that no state moves (a gripper).

    Args:
        config: the method's configuration.
        size: n_y, numbers in the state.
        extra: action dimensions that the head gives.
        generator: source of the initial parameters.
    """

    def __init__(self, config: ContractiveConfig, size: int, extra: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.ren = RENS[config.dynamics](config.latent, config.neurons, config.c, step=1.0 / (config.horizon - 1), generator=generator)
        self.readout = nn.Parameter(STD * torch.randn(size, config.latent, generator=generator))
        self.bijection = Coupling(size, config.blocks, config.block_width, log_scale=config.log_scale, generator=generator)
        self.head = MLP(config.latent, extra, (HEAD_WIDTH,), activation="tanh", generator=generator) if extra else None

    def read(self, y: Tensor) -> Tensor:
        """Measured states (N, n_y) as read-outs: phi^-1(y + phi(0)); y itself with the linear lift."""
        return y if self.config.lift == "linear" else self.bijection.inverse(y + self.bijection(torch.zeros_like(y[:1])))

    def lift(self, y: Tensor) -> Tensor:
        """Latent states (N, n_x) of measured states (N, n_y); see `rl_core.contractive.lift`."""
        return lift(self.read(y), right_inverse(self.readout))

    def pushed(self, x: Tensor, deviation: Tensor) -> Tensor:
        """Latent states (N, n_x) of motions in x that are found `deviation` (N, n_y) aside of where they should be."""
        y = self.decode(x)
        expected = y if self.config.lift == "linear" else x @ self.readout.T
        return x + correction(self.read(y + deviation), expected, right_inverse(self.readout))

    def amplification(self) -> Tensor:
        """log k^2 (), k = |C S^(-1/2)| |S^(1/2) C+| in Frobenius norms: no deviation of the read-out grows by more than k."""
        pseudo_inverse = right_inverse(self.readout)
        out = torch.trace(self.readout @ self.ren.inverse_metric() @ self.readout.T)
        into = torch.trace(pseudo_inverse.T @ self.ren.metric() @ pseudo_inverse)
        return torch.log(out * into)

    def decode(self, x: Tensor) -> Tensor:
        """States (..., n_y) of latent states (..., n_x): the bijection is applied once, to all of them and to 0."""
        z = (x @ self.readout.T).flatten(0, -2)
        mapped = self.bijection(torch.cat([z, torch.zeros_like(z[:1])]))
        return (mapped[:-1] - mapped[-1]).unflatten(0, x.shape[:-1])

    def rollout(self, start: Tensor) -> tuple[Tensor, Tensor]:
        """Starts (B, n_y) -> latent states (B, horizon, n_x) and states (B, horizon, n_y)."""
        latent, states = self.go_on(self.lift(start))
        if self.config.lift == "linear":
            states = torch.cat([start.unsqueeze(1), states[:, 1:]], dim=1)
        return latent, states

    def go_on(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The same from latent states (B, n_x)."""
        latent = self.ren.rollout(x, self.config.horizon - 1)
        return latent, self.decode(latent)

    def extra(self, latent: Tensor) -> Tensor:
        """The head's action dimensions (..., extra) in [-1, 1]; its gradient does not reach the motion."""
        if self.head is None:
            return latent.new_zeros(*latent.shape[:-1], 0)
        return torch.tanh(self.head(latent.detach()))
