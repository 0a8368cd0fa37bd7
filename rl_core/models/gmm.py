"""A mixture of Gaussians as a policy's output: log-likelihood for training, low-noise draws for acting.

    p(a) = sum_k w_k N(a; mu_k, diag sigma_k^2),   mu_k = tanh(.), sigma_k = softplus(.) + min_std

The parametrisation is robomimic's GMM head (arXiv 2108.03298, appendix on BC-RNN-GMM).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LOW_NOISE_STD = 1e-4
"""Standard deviation of every component when acting with low noise (robomimic's `low_noise_eval`)."""


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """Mixtures over actions of size A.

    Attributes:
        log_weights: (..., K), log-probabilities of the components.
        means: (..., K, A), in (-1, 1).
        stds: (..., K, A), above 0.
    """

    log_weights: Tensor
    means: Tensor
    stds: Tensor

    def log_prob(self, value: Tensor) -> Tensor:
        """log p(value): (..., A) -> (...)."""
        z = (value.unsqueeze(-2) - self.means) / self.stds
        log_density = (-0.5 * z**2 - self.stds.log() - 0.5 * math.log(2 * math.pi)).sum(-1)
        return torch.logsumexp(self.log_weights + log_density, dim=-1)

    def draw_low_noise(self, uniform: Tensor, noise: Tensor) -> Tensor:
        """A draw whose components all have the standard deviation `LOW_NOISE_STD`.

        Args:
            uniform: (...) in [0, 1); picks the first component whose cumulated weight exceeds it.
            noise: (..., A) standard normal.

        Returns:
            (..., A), within a few 1e-4 of a component's mean.
        """
        chosen = (self.log_weights.exp().cumsum(-1) <= uniform.unsqueeze(-1)).sum(-1).clamp_max(self.log_weights.shape[-1] - 1)
        index = chosen[..., None, None].expand(*chosen.shape, 1, self.means.shape[-1])
        return self.means.gather(-2, index).squeeze(-2) + LOW_NOISE_STD * noise


class GMMHead(nn.Module):
    """A linear layer from features to the parameters of a mixture.

    Args:
        inputs: size of the features.
        action_size: A.
        modes: K, components.
        min_std: lower bound on a component's standard deviation; keeps the likelihood of repeated actions finite.
    """

    def __init__(self, inputs: int, action_size: int, *, modes: int = 5, min_std: float = 0.005) -> None:
        super().__init__()
        self.action_size, self.modes, self.min_std = action_size, modes, min_std
        self.linear = nn.Linear(inputs, modes * (2 * action_size + 1))

    def forward(self, features: Tensor) -> GaussianMixture:
        """(..., inputs) -> mixtures (...)."""
        output = self.linear(features)
        parts = output[..., self.modes :].unflatten(-1, (self.modes, 2 * self.action_size))
        means, raw = parts.split(self.action_size, dim=-1)
        return GaussianMixture(torch.log_softmax(output[..., : self.modes], dim=-1), torch.tanh(means), F.softplus(raw) + self.min_std)
