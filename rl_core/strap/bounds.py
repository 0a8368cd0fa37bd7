"""Lower bounds of S-DTW costs for all queries at once, by one product of small matrices a prior trajectory.

The features of all queries, stacked, lie near a space of few dimensions. With B an orthonormal basis of it, z = B'(v - centre) and
r = |v - centre - B z| what is left of a feature v,

    |x - y|^2 >= |x|^2 + |y|^2 - 2 (z_x . z_y + r_x r_y)                   Cauchy-Schwarz on what is left

and S-DTW over these smaller distances, with the same steps, costs at most what the true one does. No bound is lost to rounding:
what single precision can be off by (Higham, Accuracy and Stability, section 3.1) is taken off every square, and off the sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from rl_core.strap.sdtw import STEPS, Steps, cheapest_path

_ROUNDING = 2.0**-24
_FAR = np.float32(1e30)
"""Beyond every sum of distances of float16 features, and finite, which fast arithmetic needs."""
_HALVES: NDArray[np.float32] = np.nan_to_num(np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32))
"""Every float16 as float32, by its bits: NumPy's own conversion is several times slower. An index holds finite ones only."""


class Bounds:
    """Lower bounds for a fixed set of queries. One object a thread: it owns the memory it works in.

    Args:
        queries: (N_q, d) float64 features each.
        steps: name in `STEPS`.
        rank: dimensions of the basis; None for the exact distances, less rounding. Of no use above d.
    """

    def __init__(self, queries: Sequence[NDArray[np.float64]], steps: Steps, rank: int | None) -> None:
        rows = np.concatenate(queries)
        self._steps = steps
        self._centre = rows.mean(axis=0).astype(np.float32)
        centred = rows - self._centre
        size = rows.shape[1]
        self._basis: Tensor | None = None
        sides = [centred]
        margin = 2 * _ROUNDING * (2 * size + 16)
        squares = (centred**2).sum(axis=1)
        if rank is not None and rank < size:
            basis = _basis(centred, rank)
            rank = basis.shape[1]
            self._basis = torch.from_numpy(basis.astype(np.float32))
            inside = centred @ basis
            left = np.sqrt(np.maximum(squares - (inside**2).sum(axis=1), 0)) * (1 + 8 * _ROUNDING)
            sides = [inside, left[:, None]]
            margin = 2 * _ROUNDING * (size * (math.sqrt(rank) + 1) + rank + 16)
        self._margin = margin
        self._queries = torch.from_numpy(np.concatenate(sides, axis=1).astype(np.float32))
        self._squares = squares.astype(np.float32)
        lengths = np.array([len(query) for query in queries])
        self._offsets = np.concatenate([[0], np.cumsum(lengths)])
        self._slack = 4 * _ROUNDING * (lengths + 8)
        self._gram = torch.empty(0)
        self._work = np.empty((2, 0), np.float32)
        self._features = np.empty((0, size), np.float32)

    def lower(self, prior: NDArray[Any], limits: NDArray[np.float64]) -> NDArray[np.float64]:
        """(Q,) lower bounds of every query's cost within `prior` (M, d) float16; inf where above the query's limit, or without a path."""
        length = len(prior)
        if len(self._features) < length:  # memory kept is memory the system need not hand out and clear for every trajectory
            self._gram = torch.empty(len(self._queries) * length)
            self._work = np.empty((2, length + 1), np.float32)
            self._features = np.empty((length, prior.shape[1]), np.float32)
        features, squares = self._features[:length], np.empty(length, np.float32)
        _centre(_HALVES, prior.view(np.uint16), self._centre, features, squares)
        side = torch.from_numpy(features)
        if self._basis is not None:
            inside = side @ self._basis
            left = torch.from_numpy(squares * np.float32(1 + self._margin)) - (inside * inside).sum(1)
            side = torch.cat([inside, left.clamp_(min=0).sqrt_()[:, None]], dim=1)
        gram = torch.mm(self._queries, side.T, out=self._gram[: len(self._queries) * length].view(-1, length)).numpy()
        if self._steps == "strap":
            found = np.empty(len(limits), np.float32)
            within = np.minimum(limits * (1 + self._slack), _FAR).astype(np.float32)
            _lower(gram, self._squares, squares, np.float32(1 - self._margin), self._offsets, within, self._work, found)
            return np.where(found < _FAR, found * (1 - self._slack), np.inf)
        shrunk = (1 - self._margin) * (self._squares[:, None] + squares) - 2 * gram
        costs = np.sqrt(np.maximum(shrunk, 0))
        pairs = zip(self._offsets[:-1], self._offsets[1:], limits * (1 + self._slack), strict=True)
        found = np.array([cheapest_path(costs[first:last], STEPS[self._steps], limit)[2] for first, last, limit in pairs])
        return found * (1 - self._slack)


def _basis(rows: NDArray[np.float64], rank: int) -> NDArray[np.float64]:
    """(d, rank) orthonormal, near the leading singular vectors of `rows`: subspace iteration, a tenth of the time of all of them.

    Bounds hold for any basis; a good one makes them tight.
    """
    values = torch.from_numpy(rows)
    basis = values[:: max(1, len(rows) // rank)][:rank].T
    for _ in range(3):
        basis = torch.linalg.qr(values.T @ (values @ basis))[0]
    return basis.numpy()


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _centre(table: NDArray[Any], bits: NDArray[Any], middle: NDArray[Any], features: NDArray[Any], squares: NDArray[Any]) -> None:
    """Float16 features (M, d), given by their bits, less `middle`, and the squared norms of that."""
    for i in range(bits.shape[0]):
        square = np.float32(0.0)
        for j in range(bits.shape[1]):
            value = table[bits[i, j]] - middle[j]
            features[i, j] = value
            square += value * value
        squares[i] = square


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nnan", "nsz"})
def _lower(
    gram: NDArray[Any],
    query_squares: NDArray[Any],
    prior_squares: NDArray[Any],
    shrink: Any,
    offsets: NDArray[Any],
    limits: NDArray[Any],
    work: NDArray[Any],
    found: NDArray[Any],
) -> None:
    """STRAP's steps. Query frame i can only lie on prior frames i .. i + M - N; entry k of a row is prior frame i + k."""
    length = gram.shape[1]
    for query in range(len(found)):
        first = offsets[query]
        frames = offsets[query + 1] - first
        width = length - frames + 1
        found[query] = _FAR
        if width < 1:
            continue
        behind, row = work[0], work[1]
        behind[0] = row[0] = _FAR
        behind[1 : width + 1] = np.float32(0.0)
        alive = True
        for i in range(frames):
            square = query_squares[first + i]
            products = gram[first + i, i : i + width]
            squares = prior_squares[i : i + width]
            for k in range(width):
                distance = shrink * (square + squares[k]) - np.float32(2.0) * products[k]
                distance = np.sqrt(max(distance, np.float32(0.0)))
                row[k + 1] = distance + min(behind[k], behind[k + 1])
            behind, row = row, behind
            if i % 8 == 7 or i == frames - 1:
                lowest = _FAR
                for k in range(width):
                    lowest = min(lowest, behind[k + 1])
                if lowest > limits[query]:
                    alive = False
                    break
                found[query] = lowest
        if not alive:
            found[query] = _FAR
