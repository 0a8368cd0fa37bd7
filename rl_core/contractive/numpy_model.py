"""A contractive model as NumPy arrays in double precision: everything that does not depend on the state is computed once.

For the step of a robot and for the many rollouts of an evaluation; equal to `ContractiveModel` up to rounding.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.contractive.lift import right_inverse
from rl_core.contractive.model import ContractiveModel
from rl_core.contractive.ren import ContinuousREN

Array = NDArray[np.float64]


class NumpyModel:
    """See the module.

    Args:
        model: in double precision, on the CPU.
        metric: S (n_x, n_x) of V = x' S x, a certificate's; None takes the parameters' own.

    Attributes:
        right_inverse: C+ (n_x, n_y).
    """

    @torch.no_grad()
    def __init__(self, model: ContractiveModel, metric: Array | None = None) -> None:
        self.exact = model.config.lift != "linear"
        self.horizon = model.config.horizon
        m = model.ren.matrices()
        self._a, self._b, self._c1 = _array(m.a.T), _array(m.b.T), _array(m.c1.T)
        self._d11 = [_array(row[:i]) for i, row in enumerate(m.d11)]
        self._substeps = model.ren.substeps(m) if isinstance(model.ren, ContinuousREN) else 0
        self._h = model.ren.step / self._substeps if self._substeps else 0.0
        self._metric = metric if metric is not None else _array(model.ren.metric())
        self._readout, self.right_inverse = _array(model.readout.T), _array(right_inverse(model.readout))
        self._blocks = _blocks(model)
        self._log_scale = model.bijection.log_scale
        self._origin = np.zeros((1, model.bijection.size))
        self._origin = self._forward(self._origin)
        self._head = [(_array(layer.weight.T), _array(layer.bias)) for layer in _linears(model)]

    def step(self, x: Array) -> Array:
        """One step of the latent system: (N, n_x) -> (N, n_x)."""
        if not self._substeps:
            return self._field(x)
        h = self._h
        for _ in range(self._substeps):
            k1 = self._field(x)
            k2 = self._field(x + 0.5 * h * k1)
            k3 = self._field(x + 0.5 * h * k2)
            k4 = self._field(x + h * k3)
            x = x + (h / 6.0) * (k1 + 2.0 * (k2 + k3) + k4)
        return x

    def _field(self, x: Array) -> Array:
        w = x @ self._c1
        for i, before in enumerate(self._d11):
            if i:
                w[:, i] += w[:, :i] @ before
            w[:, i] = np.tanh(w[:, i])
        result: Array = x @ self._a + w @ self._b
        return result

    def read(self, y: Array) -> Array:
        """Measured states (N, n_y) as read-outs: phi^-1(y + phi(0)); y itself with the linear lift."""
        return self._inverse(y + self._origin) if self.exact else y

    def lift(self, z: Array) -> Array:
        """The shortest latent state of a read-out (N, n_y), which `read` gave."""
        return z @ self.right_inverse.T

    def decode(self, x: Array) -> tuple[Array, Array]:
        """Latent states (N, n_x) -> states y (N, n_y), and what `read` would give for them."""
        z = x @ self._readout
        y = self._forward(z) - self._origin
        return y, z if self.exact else y

    def energy(self, x: Array) -> Array:
        """V = x' S x (N,): the squared distance, in the metric, to the goal, which is a motion too."""
        return np.einsum("...i,...i->...", x @ self._metric, x)

    def extra(self, x: Array) -> Array:
        """The head's action dimensions (N, k)."""
        if not self._head:
            return np.zeros((len(x), 0))
        for weight, bias in self._head:
            x = np.tanh(x @ weight + bias)
        return x

    def rollout(self, start: Array) -> tuple[Array, Array]:
        """Starts (N, n_y) -> latent states (N, T, n_x) and states (N, T, n_y), as `ContractiveModel.rollout`."""
        x = self.lift(self.read(start))
        latent = [x]
        for _ in range(self.horizon - 1):
            x = self.step(x)
            latent.append(x)
        stacked = np.stack(latent, axis=1)
        states = self.decode(stacked.reshape(-1, stacked.shape[-1]))[0].reshape(len(start), self.horizon, -1)
        if not self.exact:
            states[:, 0] = start
        return stacked, states

    def _forward(self, z: Array) -> Array:
        for block in self._blocks:
            scale, shift = self._scale_shift(block, z)
            z = z * np.exp(scale) + shift
        return z

    def _inverse(self, y: Array) -> Array:
        for block in reversed(self._blocks):
            scale, shift = self._scale_shift(block, y)
            y = (y - shift) * np.exp(-scale)
        return y

    def _scale_shift(self, block: tuple[Array, ...], kept: Array) -> tuple[Array, Array]:
        w1, b1, w2, b2, w3, b3 = block
        hidden = np.tanh(np.tanh(kept @ w1 + b1) @ w2 + b2)
        both = hidden @ w3 + b3
        size = both.shape[1] // 2
        scale = both[:, :size]
        if self._log_scale > 0:
            scale = self._log_scale * np.tanh(scale / self._log_scale)
        return scale, both[:, size:]


def _blocks(model: ContractiveModel) -> list[tuple[Array, ...]]:
    """Each block's two networks side by side as one, masks folded in: what is kept enters, what is moved leaves."""
    phi = model.bijection
    blocks: list[tuple[Array, ...]] = []
    for block in range(phi.blocks):
        mask = _array(phi.masks[block])
        w1, w2, w3 = (_array(weights[block]) for weights in (phi.w1, phi.w2, phi.w3))
        width, size = w1.shape[2], phi.size
        middle = np.zeros((2 * width, 2 * width))
        out = np.zeros((2 * width, 2 * size))
        for net in range(2):
            rows = slice(net * width, (net + 1) * width)
            middle[rows, rows] = w2[net]
            out[rows, net * size : (net + 1) * size] = w3[net] * (1.0 - mask)
        b1, b2, b3 = (_array(biases[block]).reshape(-1) for biases in (phi.b1, phi.b2, phi.b3))
        first = np.concatenate([w1[0], w1[1]], axis=1) * mask[:, None]
        blocks.append((first, b1, middle, b2, out, b3 * np.tile(1.0 - mask, 2)))
    return blocks


def _linears(model: ContractiveModel) -> list[torch.nn.Linear]:
    layers = model.head.layers if model.head is not None else ()
    return [layer for layer in layers if isinstance(layer, torch.nn.Linear)]


def _array(tensor: Tensor) -> Array:
    return np.ascontiguousarray(tensor.detach().numpy(), dtype=np.float64)
