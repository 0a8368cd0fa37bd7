"""Subsequence dynamic time warping (S-DTW): where in a prior trajectory a query is played (STRAP, arXiv 2412.15182, section 4).

    D(1, j) = c(1, j)                                              free start
    D(i, j) = c(i, j) + min over steps (a, b) of D(i - a, j - b)   outside the matrix: infinite
    cost    = min over j of D(N, j)                                free end

with c(i, j) = |x_i - y_j| over N query and M prior frames. STRAP's steps are (1, 1) and (1, 2): each query frame is used exactly
once and the prior advances by 1 or 2, so N <= matched length <= 2 N - 1, and a cost is a sum of exactly N distances. Costs of one
query compare across prior trajectories; costs of queries of different lengths do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from rl_core.errors import ArmstackError

Steps = Literal["strap", "classic", "symmetric"]
STEPS: dict[Steps, NDArray[np.int64]] = {
    "strap": np.array([[1, 1], [1, 2]]),
    "classic": np.array([[1, 1], [1, 0], [0, 1]]),
    "symmetric": np.array([[1, 1], [2, 1], [1, 2]]),
}
"""Step sets (query, prior): the paper's, the textbook's, and the one that allows half to twice the speed."""


class RetrievalError(ArmstackError):
    """Input that retrieval cannot work with; names what was found and what would be valid."""


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """The prior frames `start` to `stop` (exclusive) that a query matches, and the sum of the distances along the path."""

    start: int
    stop: int
    cost: float


def align(query: NDArray[Any], prior: NDArray[Any], steps: Steps = "strap", limit: float = math.inf) -> Alignment | None:
    """The cheapest match of `query` (N, d) within `prior` (M, d), in double precision.

    Args:
        query: finite features, one row a frame.
        prior: as `query`.
        steps: name in `STEPS`.
        limit: matches that cost more are of no interest: the search ends as soon as none can cost less.

    Returns:
        None where no path exists (with STRAP's steps: N > M) or the match costs more than `limit`.
    """
    return align_tensors(as_double(query), as_double(prior), steps, limit)


def as_double(values: NDArray[Any]) -> Tensor:
    """A copy in memory of torch's own, whose alignment is always the same: so are then the last bits of a product."""
    return torch.from_numpy(np.array(values, order="C")).to(torch.float64, copy=True)  # a view that is read-only makes torch complain


def align_tensors(query: Tensor, prior: Tensor, steps: Steps = "strap", limit: float = math.inf) -> Alignment | None:
    """`align` of float64 tensors from `as_double`."""
    if steps == "strap" and len(query) > len(prior):
        return None
    start, end, cost = cheapest_path(distances(query, prior), STEPS[steps], limit)
    return Alignment(start=int(start), stop=int(end) + 1, cost=float(cost)) if end >= 0 else None


def distances(query: Tensor, prior: Tensor) -> NDArray[np.float64]:
    """(N, M) Euclidean distances by one matrix product; squares below 0, which rounding makes of equal rows, are 0."""
    norms = [torch.linalg.vector_norm(side, dim=1) ** 2 for side in (query, prior)]
    squares = torch.addmm(norms[0][:, None] + norms[1], query, prior.T, alpha=-2.0)
    return squares.clamp_(min=0.0).sqrt_().numpy()


@njit(cache=True, nogil=True)
def cheapest_path(cost: NDArray[Any], steps: NDArray[np.int64], limit: float) -> tuple[int, int, float]:
    """(start, end, cost) of the cheapest path, end inclusive; (-1, -1, inf) where there is none within `limit`."""
    total = np.full(cost.shape, np.inf)
    reach = steps[:, 0].max()  # a path passes at least one of so many rows in a row
    behind = np.inf
    for i in range(cost.shape[0]):
        lowest = np.inf
        for j in range(cost.shape[1]):
            best = 0.0 if i == 0 else np.inf
            if i > 0:
                for step in range(len(steps)):
                    a, b = i - steps[step, 0], j - steps[step, 1]
                    if a >= 0 and b >= 0 and total[a, b] < best:
                        best = total[a, b]
            total[i, j] = cost[i, j] + best
            lowest = min(lowest, total[i, j])
        if lowest > limit and (reach == 1 or behind > limit):
            return -1, -1, np.inf
        behind = lowest
    i, end = cost.shape[0] - 1, int(np.argmin(total[-1]))
    if not total[i, end] <= limit or total[i, end] == np.inf:
        return -1, -1, np.inf
    j = end
    while i > 0:
        best, came_from = np.inf, 0
        for step in range(len(steps)):
            a, b = i - steps[step, 0], j - steps[step, 1]
            if a >= 0 and b >= 0 and total[a, b] < best:
                best, came_from = total[a, b], step
        i, j = i - steps[came_from, 0], j - steps[came_from, 1]
    return j, end, total[-1, end]
