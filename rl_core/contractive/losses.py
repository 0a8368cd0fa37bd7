"""Losses on whole rollouts: mean squared error, and the soft-DTW divergence where durations differ.

Soft-DTW (Cuturi and Blondel, arXiv 1703.01541): R_ij = |a_i - b_j|^2 + softmin_gamma(R_{i-1,j}, R_{i,j-1}, R_{i-1,j-1}).
Its divergence D(a, b) = R(a, b) - R(a, a) / 2 - R(b, b) / 2 is 0 for a = b, which R alone is not (Blondel, Mensch, Vert, arXiv 2010.08354).
"""

from __future__ import annotations

import torch
from torch import Tensor

_FAR = 1e10


def mse(rollout: Tensor, target: Tensor) -> Tensor:
    """Mean over rows, time and dimensions of (rollout - target)^2, both (B, T, D)."""
    return (rollout - target).square().mean()


def soft_dtw(a: Tensor, b: Tensor, *, gamma: float, lengths: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """R (B,) of sequences a (B, N, D) and b (B, M, D).

    Cells on an anti-diagonal do not depend on each other and are computed together.

    Args:
        a: sequences; what lies behind a row's length has no influence.
        b: sequences.
        gamma: smoothing, in units of squared distance.
        lengths: true lengths of a's and b's rows, (B,) each; all of N and M if None.
    """
    rows, n, m = len(a), a.shape[1], b.shape[1]
    cost = (a.unsqueeze(2) - b.unsqueeze(1)).square().sum(-1)
    i = torch.arange(n, device=a.device)
    far = a.new_full((rows, n + 1), _FAR)
    origin = far.clone()
    origin[:, 0] = 0.0
    two_back, one_back = origin, far  # diagonals k - 2 and k - 1, indexed by i: entry i of diagonal k is R_{i, k - i}
    diagonals = []
    for k in range(2, n + m + 1):
        low, high = max(1, k - m), min(n, k - 1)
        inside = i[low - 1 : high]
        costs = cost[:, inside, k - 2 - inside]
        options = torch.stack([one_back[:, low - 1 : high], one_back[:, low : high + 1], two_back[:, low - 1 : high]])
        values = costs - gamma * torch.logsumexp(-options / gamma, dim=0)
        current = torch.cat([far[:, :low], values, far[:, high + 1 :]], dim=1)
        diagonals.append(current)
        two_back, one_back = one_back, current
    if lengths is None:
        return one_back[:, n]
    ends_a, ends_b = lengths
    stacked = torch.stack(diagonals)
    return stacked[ends_a + ends_b - 2, torch.arange(rows, device=a.device), ends_a]


def soft_dtw_divergence(rollout: Tensor, target: Tensor, lengths: Tensor, *, gamma: float) -> Tensor:
    """Mean over rows of D(rollout, target), each row a point of `lengths` (B,) targets; rollout (B, N, D), target (B, M, D)."""
    whole = torch.full_like(lengths, rollout.shape[1])
    between = soft_dtw(rollout, target, gamma=gamma, lengths=(whole, lengths))
    of_rollout = soft_dtw(rollout, rollout, gamma=gamma)
    of_target = soft_dtw(target, target, gamma=gamma, lengths=(lengths, lengths))
    return (between - 0.5 * (of_rollout + of_target)).mean()
