"""Recurrent equilibrium networks that contract for any value of their parameters (Revay, Wang, Manchester, arXiv 2104.05942).

Both variants are the same loop around a linear system and n_v tanh neurons, evaluated in order (D11 is strictly lower triangular):

    v_i = (C1 x)_i + sum_{j<i} D11_ij w_j,   w_i = tanh(v_i)
    discrete   x+ = A x + B w        V = dx' S dx,  V+ <= V / c
    continuous x' = A x + B w        V = dx' S dx,  V' <= -c V

There is no input and no bias, so x = 0 is the only equilibrium. Rows of Lambda^-1 are folded into C1 and D11.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rl_core.contractive.rollout import discrete_rollout, neurons

STD = 0.5
"""Standard deviation of all initial parameters."""
MOST_VERTICES = 2**12


@dataclass(frozen=True, kw_only=True)
class Matrices:
    """The dependent matrices: A (n_x, n_x), B (n_x, n_v), C1 (n_v, n_x), D11 (n_v, n_v) strictly lower triangular."""

    a: Tensor
    b: Tensor
    c1: Tensor
    d11: Tensor

    def slopes(self) -> Tensor:
        """The Jacobians (2^n_v, n_x, n_x) of A x + B w at all corners of the tanh slopes' cube [0, 1]^n_v.

        The Jacobian is affine in each slope, so a convex function of it is largest at a corner.
        """
        corners = torch.tensor(list(itertools.product((0.0, 1.0), repeat=len(self.c1))), dtype=self.a.dtype, device=self.a.device)
        rows = self.c1.new_zeros(len(corners), len(self.c1), self.c1.shape[1])
        for i in range(len(self.c1)):
            rows[:, i] = corners[:, i, None] * (self.c1[i] + torch.einsum("j,njx->nx", self.d11[i, :i], rows[:, :i]))
        return self.a + self.b @ rows


class REN(nn.Module, ABC):
    """A latent system; see the module.

    Args:
        latent: n_x.
        neurons: n_v.
        c: guaranteed decay of V.
        step: what one step of the rollout is in the system's time; only the continuous one uses it.
    """

    def __init__(self, latent: int, neurons: int, c: float, *, step: float) -> None:
        super().__init__()
        self.latent, self.neurons, self.c, self.step = latent, neurons, c, step

    def _parameter(self, *shape: int, generator: torch.Generator | None, std: float = STD) -> nn.Parameter:
        return nn.Parameter(std * torch.randn(shape, generator=generator))

    @abstractmethod
    def matrices(self) -> Matrices:
        """The dependent matrices; to be recomputed after each change of the parameters."""

    @abstractmethod
    def metric(self) -> Tensor:
        """S (n_x, n_x), symmetric and positive definite."""

    @abstractmethod
    def inverse_metric(self) -> Tensor:
        """S^-1 (n_x, n_x)."""

    @property
    @abstractmethod
    def promised(self) -> float:
        """Factor on the norm sqrt(V) in each step of a rollout that the parameterisation guarantees."""

    @abstractmethod
    def factor(self, jacobians: Tensor) -> Tensor:
        """The same factor () for the Jacobians `Matrices.slopes` in coordinates in which the metric is the identity."""

    @property
    def few_vertices(self) -> bool:
        """Whether all corners of the slopes' cube can be looked at."""
        return 2**self.neurons <= MOST_VERTICES

    @torch.no_grad()
    def certified(self) -> float:
        """The factor for the matrices there are: the largest over all slopes of the neurons, at most `promised`."""
        if not self.few_vertices:
            return self.promised
        return min(self.promised, float(self.factor(_in_metric(self.matrices().slopes(), self.metric()))))

    @abstractmethod
    def rollout(self, x: Tensor, steps: int) -> Tensor:
        """(B, n_x) -> (B, steps + 1, n_x), the start included."""


class DiscreteREN(REN):
    """H = X'X + eps I in 3x3 blocks of (n_x, n_v, n_x): F = H31, B1 = H32, P = H33, C1 = -H21, Lambda = diag(H22) / 2,
    D11 = -strict_lower(H22), E = (H11 + c P + Y - Y') / 2;  A = E^-1 F, B = E^-1 B1, S = E' P^-1 E."""

    EPS = 1e-3

    def __init__(self, latent: int, neurons: int, c: float, *, step: float = 1.0, generator: torch.Generator | None = None) -> None:
        super().__init__(latent, neurons, c, step=step)
        size = 2 * latent + neurons
        self.x = self._parameter(size, size, generator=generator)
        self.y = self._parameter(latent, latent, generator=generator)

    def _blocks(self) -> tuple[Tensor, Tensor]:
        """H and E."""
        n, v = self.latent, self.neurons
        h = self.x.T @ self.x + self.EPS * torch.eye(len(self.x), dtype=self.x.dtype, device=self.x.device)
        e = 0.5 * (h[:n, :n] + self.c * h[n + v :, n + v :] + self.y - self.y.T)
        return h, e

    def matrices(self) -> Matrices:
        """See `REN.matrices`."""
        n, v = self.latent, self.neurons
        h, e = self._blocks()
        solved = torch.linalg.solve(e, h[n + v :, : n + v])
        h22 = h[n : n + v, n : n + v]
        inverse_lambda = (2.0 / torch.diagonal(h22)).unsqueeze(1)
        return Matrices(a=solved[:, :n], b=solved[:, n:], c1=-h[n : n + v, :n] * inverse_lambda, d11=-torch.tril(h22, -1) * inverse_lambda)

    def metric(self) -> Tensor:
        """See `REN.metric`."""
        h, e = self._blocks()
        first = self.latent + self.neurons
        return _symmetric(e.T @ torch.linalg.solve(h[first:, first:], e))

    def inverse_metric(self) -> Tensor:
        """E^-1 P E^-T; P need not be inverted."""
        h, e = self._blocks()
        first = self.latent + self.neurons
        return _symmetric(torch.linalg.solve(e, torch.linalg.solve(e, h[first:, first:]).T))

    @property
    def promised(self) -> float:
        """c^(-1/2)."""
        return self.c**-0.5

    def factor(self, jacobians: Tensor) -> Tensor:
        """max ||J|| over the corners J."""
        return torch.linalg.matrix_norm(jacobians, ord=2).max()

    def rollout(self, x: Tensor, steps: int) -> Tensor:
        """See `REN.rollout`; the dependent matrices are computed once."""
        m = self.matrices()
        return discrete_rollout(x, m.a, m.b, m.c1, m.d11, steps)


class ContinuousREN(REN):
    """P = P*P*'/2 + eps I, H = XX' + eps I = [H1 H2; H3 H4], Lambda = diag(H4) / 2: A = -P^-1 (H1 + c P + Y - Y') / 2,
    B = -P^-1 (H2 + Chi), C1 = Lambda^-1 Chi', D11 = -Lambda^-1 strict_lower(H4), S = P. Fixed-step RK4."""

    EPS = 0.05

    def __init__(self, latent: int, neurons: int, c: float, *, step: float, generator: torch.Generator | None = None) -> None:
        super().__init__(latent, neurons, c, step=step)
        size = latent + neurons
        self.p = self._parameter(latent, latent, generator=generator)
        self.chi = self._parameter(latent, neurons, generator=generator)
        self.x = self._parameter(size, size, generator=generator)
        self.y = self._parameter(latent, latent, generator=generator)

    def metric(self) -> Tensor:
        """See `REN.metric`."""
        return 0.5 * self.p @ self.p.T + self.EPS * torch.eye(self.latent, dtype=self.p.dtype, device=self.p.device)

    def matrices(self) -> Matrices:
        """See `REN.matrices`."""
        n, p = self.latent, self.metric()
        h = self.x @ self.x.T + self.EPS * torch.eye(len(self.x), dtype=self.x.dtype, device=self.x.device)
        drift = 0.5 * (h[:n, :n] + self.c * p + self.y - self.y.T)
        solved = -torch.linalg.solve(p, torch.cat([drift, h[:n, n:] + self.chi], dim=1))
        h4 = h[n:, n:]
        inverse_lambda = (2.0 / torch.diagonal(h4)).unsqueeze(1)
        return Matrices(a=solved[:, :n], b=solved[:, n:], c1=self.chi.T * inverse_lambda, d11=-torch.tril(h4, -1) * inverse_lambda)

    def inverse_metric(self) -> Tensor:
        """P^-1."""
        return _symmetric(torch.linalg.inv(self.metric()))

    @property
    def promised(self) -> float:
        """exp(-c step / 2)."""
        return math.exp(-0.5 * self.c * self.step)

    def factor(self, jacobians: Tensor) -> Tensor:
        """exp(mu step), mu the largest logarithmic norm of the corners J: lambda_max(J + J') / 2."""
        return torch.exp(torch.linalg.eigvalsh(0.5 * (jacobians + jacobians.mT)).max() * self.step)

    @torch.no_grad()
    def substeps(self, m: Matrices) -> int:
        """RK4 steps in one step of the rollout, so that a step's length times a bound on the field's slope stays below 1."""
        slope = torch.linalg.matrix_norm(m.slopes() if self.few_vertices else m.a, ord=2).max()
        return max(1, math.ceil(float(slope) * self.step))

    def rollout(self, x: Tensor, steps: int) -> Tensor:
        """See `REN.rollout`; the dependent matrices are computed once."""
        m = self.matrices()
        substeps = self.substeps(m)
        h = self.step / substeps
        points = [x]
        for _ in range(steps):
            for _ in range(substeps):
                k1 = field(m, x)
                k2 = field(m, x + 0.5 * h * k1)
                k3 = field(m, x + 0.5 * h * k2)
                k4 = field(m, x + h * k3)
                x = x + (h / 6.0) * (k1 + 2.0 * (k2 + k3) + k4)
            points.append(x)
        return torch.stack(points, dim=1)


class UnconstrainedRNN(REN):
    """The discrete loop with free A, B, C1, D11: what the parameterisation is compared with. Nothing is guaranteed; S = I."""

    def __init__(self, latent: int, neurons: int, c: float, *, step: float = 1.0, generator: torch.Generator | None = None) -> None:
        super().__init__(latent, neurons, c, step=step)
        narrow = 1.0 / math.sqrt(latent)
        self.a = nn.Parameter(0.9 * torch.eye(latent) + self._parameter(latent, latent, generator=generator, std=0.1 * narrow).detach())
        self.b = self._parameter(latent, neurons, generator=generator, std=narrow)
        self.c1 = self._parameter(neurons, latent, generator=generator, std=narrow)
        self.d11 = self._parameter(neurons, neurons, generator=generator)

    def matrices(self) -> Matrices:
        """See `REN.matrices`."""
        return Matrices(a=self.a, b=self.b, c1=self.c1, d11=torch.tril(self.d11, -1))

    def metric(self) -> Tensor:
        """The identity."""
        return torch.eye(self.latent, dtype=self.a.dtype, device=self.a.device)

    def inverse_metric(self) -> Tensor:
        """The identity."""
        return self.metric()

    @property
    def promised(self) -> float:
        """Infinite: no promise."""
        return math.inf

    def factor(self, jacobians: Tensor) -> Tensor:
        """max ||J|| over the corners; usually above 1."""
        return torch.linalg.matrix_norm(jacobians, ord=2).max()

    def rollout(self, x: Tensor, steps: int) -> Tensor:
        """See `REN.rollout`."""
        m = self.matrices()
        return discrete_rollout(x, m.a, m.b, m.c1, m.d11, steps)


RENS: dict[str, type[DiscreteREN | ContinuousREN | UnconstrainedRNN]] = {
    "discrete": DiscreteREN,
    "continuous": ContinuousREN,
    "unconstrained": UnconstrainedRNN,
}


def field(m: Matrices, x: Tensor) -> Tensor:
    """A x + B w for rows x (B, n_x)."""
    return torch.addmm(x @ m.a.T, neurons(x @ m.c1.T, m.d11), m.b.T)


def _in_metric(jacobians: Tensor, metric: Tensor) -> Tensor:
    upper = torch.linalg.cholesky(metric).T
    return torch.linalg.solve_triangular(upper, upper @ jacobians, upper=True, left=False)


def _symmetric(matrix: Tensor) -> Tensor:
    return 0.5 * (matrix + matrix.T)
