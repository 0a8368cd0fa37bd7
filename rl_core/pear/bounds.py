"""The sub-optimality bound's estimable terms. They are logged as motivation: the bound itself is not a number that can be computed.

Let pi* be phi_D-common in the policy class that made the demonstrations D: E 1[TV(pi*(.|s, g), pi_D(.|s, g)) >= eps] <= phi_D.
Then, for the higher level (arXiv 2306.06394),

    |J(pi*) - J(pi_H)| <= lambda_H phi_D + lambda_H E_{s~kappa, pi_D} TV(pi_D, pi_H),
    lambda_H = 2 R_max |d_c^{pi*} / kappa|_inf / ((1 - gamma) (1 - gamma^c)),

and for the lower one with (1 - gamma)^2 below. The ratio of state distributions |d / kappa|_inf is unknown and may be infinite. What is
left is estimated in the states of D, under one assumption: a demonstrator is a Gaussian around its action with the actor's own spread.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rl_core.pear.config import Level, PEARConfig

FAR = 0.5
"""eps: from this total variation on, a demonstrated row counts as far from the policy."""


def expert_divergence(mean: Tensor, log_std: Tensor, expert: Tensor) -> dict[str, Tensor]:
    """TV(pi_D, pi) in the demonstrations' rows, averaged, and the share of rows at `FAR` or above.

    Before tanh, which changes no total variation, both are Gaussians of equal spread: TV = erf(d / (2 sqrt 2)) with
    d = |(atanh a_e - mean) / std|.

    Args:
        mean, log_std: the actor's, (E, A).
        expert: demonstrated actions in [-1, 1], (E, A).
    """
    raw = torch.atanh(expert.clamp(-1.0 + 1e-6, 1.0 - 1e-6))
    distance = ((raw - mean) * torch.exp(-log_std)).norm(dim=-1)
    variation = torch.erf(distance / (2.0 * math.sqrt(2.0)))
    return {"bound/divergence": variation.mean(), "bound/far_share": (variation >= FAR).to(variation.dtype).mean()}


def bound_factor(config: PEARConfig, level: Level) -> float:
    """lambda without the unknown ratio of state distributions, R_max = 1: the return that a unit of divergence may cost at most."""
    steps = config.primitive_steps if level == "high" else 1
    return 2.0 / ((1.0 - config.gamma) * (1.0 - config.gamma**steps))
