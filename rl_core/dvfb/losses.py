"""DVFB's losses as functions of tensors: F and B may come from networks or from tables.

Shapes: F (H, n, d) of H heads, B (m, d), skill z (n, d). In a batch m = n, and goal j is the one that row j's transition reached.
Sources: forward-backward [FB] arXiv 2103.07945; auxiliary loss, exploration value and actor [code] github.com/bofusun/DVFB.
"""

from __future__ import annotations

import torch
from torch import Tensor

RIDGE = 1e-4


def off_diagonal_mean(matrix: Tensor) -> Tensor:
    """Mean of the n (n - 1) entries beside the diagonal, (..., n, n) -> (...)."""
    n = matrix.shape[-1]
    return (matrix.sum((-2, -1)) - matrix.diagonal(dim1=-2, dim2=-1).sum(-1)) / (n * (n - 1))


def pair_loss(values: Tensor, target: Tensor, own: Tensor | None = None) -> Tensor:
    """E over independent pairs of (v_ij - y_ij)^2 / 2 - E over own pairs of v_ij: (..., n, m), (n, m) -> (...).

    Its minimum is v_ij = y_ij + P(j is i's own) / P(j), a density with respect to the goals.

    Args:
        values: v.
        target: y, without gradient.
        own: (n, m) probability that goal j is row i's own, for tables whose m goals are all that there are. None: a batch, where goal i
            is row i's own, and pairs beside the diagonal are independent.
    """
    squares = (values - target).square()
    if own is None:
        return 0.5 * off_diagonal_mean(squares) - values.diagonal(dim1=-2, dim2=-1).mean(-1)
    return 0.5 * squares.mean((-2, -1)) - (values * own).sum(-1).mean(-1)


def successor_measure(forward: Tensor, backward: Tensor) -> Tensor:
    """M_ij = F_i . B_j, the density of discounted visits of goal j after row i: (H, n, d), (m, d) -> (H, n, m)."""
    return forward @ backward.T


def measure_target(forward: Tensor, backward: Tensor, discount: Tensor) -> Tensor:
    """gamma_i min_h M_ij of the target networks at (s', a'): (H, n, d), (m, d), (n,) -> (n, m); the smaller head entry by entry."""
    return discount.unsqueeze(-1) * successor_measure(forward, backward).amin(0)


def fb_loss(forward: Tensor, backward: Tensor, target: Tensor, own: Tensor | None = None) -> Tensor:
    """Sum over heads of E_{i != j} (M_ij - y_ij)^2 / 2 - E_i M_ii, (); the discount is inside y, the diagonal has none."""
    return pair_loss(successor_measure(forward, backward), target, own).sum()


def orthonormality_loss(backward: Tensor, own: Tensor | None = None) -> Tensor:
    """E_{i != j} (B_i . B_j)^2 - 2 E_i B_i . B_i, (): smallest where E B B^T = 1."""
    products = backward @ backward.T
    return 2.0 * pair_loss(products, torch.zeros_like(products), own)


def covariance(features: Tensor) -> Tensor:
    """E B B^T, (n, d) -> (d, d)."""
    return features.T @ features / len(features)


def inverse_covariance(features: Tensor) -> Tensor:
    """(E B B^T)^-1, (n, d) -> (d, d); 1e-4 is added on the diagonal of few features (n < 5 d), whose covariance may not have an inverse."""
    n, d = features.shape
    matrix = covariance(features)
    if n < 5 * d:
        matrix = matrix + RIDGE * torch.eye(d, dtype=matrix.dtype, device=matrix.device)
    return torch.linalg.inv(matrix)


def implicit_reward(backward: Tensor, skill: Tensor) -> Tensor:
    """rho_z(g) = B(g)^T (E B B^T)^-1 z, the reward that z asks for: (n, d), (n, d) -> (n,)."""
    return (backward @ inverse_covariance(backward) * skill).sum(-1)


def skill_value(forward: Tensor, skill: Tensor) -> Tensor:
    """Q_M = F . z, (H, n, d), (n, d) -> (H, n)."""
    return (forward * skill).sum(-1)


def td_target(reward: Tensor, discount: Tensor, values: Tensor) -> Tensor:
    """r + gamma min_h Q_h(s', a'): (n,), (n,), (H, n) -> (n,)."""
    return reward + discount * values.amin(0)


def td_loss(values: Tensor, target: Tensor) -> Tensor:
    """Sum over heads of the mean squared error: (H, n), (n,) -> ()."""
    return (values - target).square().mean(-1).sum()


def actor_loss(skill_values: Tensor | None, critic_values: Tensor | None, weight: float) -> Tensor:
    """-E [alpha min_h Q_h(s, z, a) + min_h F_h(s, z, a) . z], (H, n) each; a value that is None is left out."""
    objective = torch.zeros(())
    if critic_values is not None:
        objective = objective + weight * critic_values.amin(0).mean()
    if skill_values is not None:
        objective = objective + skill_values.amin(0).mean()
    return -objective


def laplacian_loss(features: Tensor, next_features: Tensor) -> Tensor:
    """mean (phi(s) - phi(s'))^2 plus the orthonormality of phi(s), (n, d), (n, d) -> (): features that change slowly [FB]."""
    return (features - next_features).square().mean() + orthonormality_loss(features)


def successor_feature_target(features: Tensor, discount: Tensor, forward: Tensor, skill: Tensor) -> Tensor:
    """phi(s') + gamma psi(s', z, a') of the head that values z less: (n, d), (n,), (H, n, d), (n, d) -> (n, d) [FB]."""
    worst = skill_value(forward, skill).argmin(0)
    return features + discount.unsqueeze(-1) * forward[worst, torch.arange(len(worst), device=forward.device)]


def successor_feature_loss(forward: Tensor, target: Tensor) -> Tensor:
    """Sum over heads of the mean squared error: (H, n, d), (n, d) -> ()."""
    return (forward - target).square().mean((-2, -1)).sum()


def orthonormality_error(features: Tensor) -> Tensor:
    """|E B B^T - 1| / sqrt(d), ()."""
    matrix = covariance(features)
    return (matrix - torch.eye(len(matrix), device=matrix.device)).norm() / len(matrix) ** 0.5


def effective_rank(features: Tensor) -> Tensor:
    """(tr C)^2 / tr C^2 of C = E B B^T, (): d where all directions are used alike, 1 where B has collapsed."""
    matrix = covariance(features)
    return matrix.trace().square() / matrix.square().sum()
