"""The fair opponent of a contractive policy: the same model in plain PyTorch, as one writes it down from the equations.

The dependent matrices are computed and E is inverted in every step, the neurons are a loop, the bijection maps every point by itself and
the origin once more, and autograd records it all. Same weights, same numbers; this is also how the authors' released code works.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rl_core.contractive.model import ContractiveModel


class PlainModel(nn.Module):
    """Shares the parameters of `model` (discrete, exact lift). `prepare` keeps the dependent matrices, as one would to act."""

    def __init__(self, model: ContractiveModel) -> None:
        super().__init__()
        self.model = model
        self._ready: tuple[Tensor, ...] | None = None
        phi = model.bijection
        self.nets = nn.ModuleList()
        for block in range(phi.blocks):
            for net in range(2):
                layers: list[nn.Module] = []
                for weight, bias in ((phi.w1, phi.b1), (phi.w2, phi.b2), (phi.w3, phi.b3)):
                    layer = nn.Linear(weight.shape[2], weight.shape[3], dtype=weight.dtype)
                    layer.weight.data, layer.bias.data = weight[block, net].detach().T.contiguous(), bias[block, net, 0].detach().clone()
                    layers += [layer, nn.Tanh()]
                self.nets.append(nn.Sequential(*layers[:-1]))

    def trained(self) -> list[nn.Parameter]:
        """The parameters that training moves."""
        ren = self.model.ren
        return [*ren.parameters(), self.model.readout, *self.nets.parameters()]

    def _scale_shift(self, block: int, kept: Tensor) -> tuple[Tensor, Tensor]:
        phi, moved = self.model.bijection, 1 - self.model.bijection.masks[block]
        scale, shift = self.nets[2 * block](kept), self.nets[2 * block + 1](kept)
        return phi.log_scale * torch.tanh(scale / phi.log_scale) * moved, shift * moved

    def bijection(self, z: Tensor) -> Tensor:
        """phi."""
        for block in range(self.model.bijection.blocks):
            scale, shift = self._scale_shift(block, z * self.model.bijection.masks[block])
            z = z * torch.exp(scale) + shift
        return z

    def inverse(self, y: Tensor) -> Tensor:
        """phi^-1."""
        for block in reversed(range(self.model.bijection.blocks)):
            scale, shift = self._scale_shift(block, y * self.model.bijection.masks[block])
            y = (y - shift) * torch.exp(-scale)
        return y

    def prepare(self) -> None:
        """Computes the dependent matrices once and for all."""
        with torch.no_grad():
            self._ready = self._matrices()

    def _matrices(self) -> tuple[Tensor, ...]:
        if self._ready is not None:
            return self._ready
        ren = self.model.ren
        n, v = ren.latent, ren.neurons
        x, y = ren.get_parameter("x"), ren.get_parameter("y")
        h = x.T @ x + 1e-3 * torch.eye(2 * n + v, dtype=x.dtype)
        p = h[n + v :, n + v :]
        e = 0.5 * (h[:n, :n] + ren.c * p + y - y.T)
        h22 = h[n : n + v, n : n + v]
        inverse = torch.linalg.inv(e)
        right_inverse = self.model.readout.T @ torch.linalg.inv(self.model.readout @ self.model.readout.T)
        moved = (inverse @ h[n + v :, :n], inverse @ h[n + v :, n : n + v])
        return *moved, -h[n : n + v, :n], 0.5 * torch.diagonal(h22), -torch.tril(h22, -1), right_inverse

    def lift(self, y: Tensor) -> Tensor:
        """Shortest latent states of measured states."""
        right_inverse = self._matrices()[-1]
        return self.inverse(y + self.bijection(torch.zeros_like(y))) @ right_inverse.T

    def step(self, x: Tensor) -> Tensor:
        """One step of the latent system."""
        a, b, c1, scale, d11, _ = self._matrices()
        w = x.new_zeros(len(x), 0)
        for i in range(len(c1)):
            v = x @ c1[i] + w @ d11[i, :i]
            w = torch.cat([w, torch.tanh(v / scale[i]).unsqueeze(1)], dim=1)
        return x @ a.T + w @ b.T

    def decode(self, x: Tensor) -> Tensor:
        """y of latent states (N, n_x)."""
        z = x @ self.model.readout.T
        return self.bijection(z) - self.bijection(torch.zeros_like(z))

    def rollout(self, start: Tensor) -> Tensor:
        """(B, n_y) -> (B, T, n_y)."""
        x = self.lift(start)
        states = [self.decode(x)]
        for _ in range(self.model.config.horizon - 1):
            x = self.step(x)
            states.append(self.decode(x))
        return torch.stack(states, dim=1)
