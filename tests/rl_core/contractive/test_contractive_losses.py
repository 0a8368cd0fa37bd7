from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rl_core.contractive.evaluation import dtw
from rl_core.contractive.losses import mse, soft_dtw, soft_dtw_divergence


def sequences(rows: int, points: int, seed: int) -> torch.Tensor:
    return torch.randn(rows, points, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def plain_soft_dtw(a: np.ndarray, b: np.ndarray, gamma: float) -> float:
    """Cell by cell, as the paper's algorithm 1."""
    table = np.full((len(a) + 1, len(b) + 1), np.inf)
    table[0, 0] = 0.0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            before = [table[i - 1, j], table[i, j - 1], table[i - 1, j - 1]]
            least = min(before)
            soft = least - gamma * math.log(sum(math.exp(-(value - least) / gamma) for value in before))
            table[i, j] = ((a[i - 1] - b[j - 1]) ** 2).sum() + soft
    return float(table[-1, -1])


@pytest.mark.parametrize(("n", "m", "gamma"), [(7, 7, 0.1), (5, 9, 0.1), (9, 4, 1.0), (2, 2, 0.01)])
def test_soft_dtw_equals_the_plain_recursion(n: int, m: int, gamma: float) -> None:
    a, b = sequences(3, n, 0), sequences(3, m, 1)
    plain = [plain_soft_dtw(x, y, gamma) for x, y in zip(a.numpy(), b.numpy(), strict=True)]
    torch.testing.assert_close(soft_dtw(a, b, gamma=gamma), torch.tensor(plain, dtype=torch.float64), rtol=1e-9, atol=1e-9)


def test_soft_dtw_of_padded_rows_is_that_of_the_rows_alone() -> None:
    a, b = sequences(3, 8, 0), sequences(3, 10, 1)
    ends_a, ends_b = torch.tensor([8, 3, 5]), torch.tensor([4, 10, 7])
    padded = soft_dtw(a, b, gamma=0.1, lengths=(ends_a, ends_b))
    alone = [soft_dtw(a[i : i + 1, : ends_a[i]], b[i : i + 1, : ends_b[i]], gamma=0.1)[0] for i in range(3)]
    torch.testing.assert_close(padded, torch.stack(alone))


def test_gradient_of_soft_dtw_is_that_of_finite_differences() -> None:
    a, b = sequences(2, 5, 0).requires_grad_(), sequences(2, 6, 1)
    assert torch.autograd.gradcheck(lambda x: soft_dtw(x, b, gamma=0.1), (a,))
    lengths = torch.tensor([4, 6])
    assert torch.autograd.gradcheck(lambda x: soft_dtw_divergence(x, b, lengths, gamma=0.1), (a,))


def test_divergence_is_zero_for_equal_motions_and_has_no_slope_there() -> None:
    """Which soft-DTW alone has not: it rewards motions that are smoother than the demonstration."""
    a = sequences(2, 6, 0)
    rollout = a.clone().requires_grad_()
    whole = torch.tensor([6, 6])
    divergence = soft_dtw_divergence(rollout, a, whole, gamma=0.1)
    (slope,) = torch.autograd.grad(divergence, rollout)
    assert abs(divergence.item()) < 1e-9 and float(slope.abs().max()) < 1e-9
    alone = soft_dtw(rollout, a, gamma=0.1).sum()
    assert torch.autograd.grad(alone, rollout)[0].abs().max() > 1e-3
    assert soft_dtw_divergence(a + 0.1, a, whole, gamma=0.1) > 0


def test_mse_is_the_mean_over_rows_time_and_dimensions() -> None:
    a = torch.zeros(2, 3, 2)
    assert float(mse(a + 2.0, a)) == 4.0


def test_dtw_sums_distances_along_the_best_warping() -> None:
    line = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    late = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    aside = line + np.array([0.0, 0.5])
    assert dtw(line[None], late[None])[0] == 0.0
    np.testing.assert_allclose(dtw(np.stack([line, line]), np.stack([aside, line])), [1.5, 0.0])
