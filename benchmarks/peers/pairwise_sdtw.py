"""The fair opponent of retrieval: S-DTW pair by pair, as STRAP's released code works, each part as fast as it comes.

Distances of a pair are one product of the fastest BLAS here (torch's), accumulation and trace-back are compiled. Features are single
precision and in memory, norms are worked out once. What it lacks is what it doesn't know of other pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from rl_core.strap.search import Match


class PairwiseSearch:
    """Takes queries and prior features, float32, one array each."""

    def __init__(self, queries: Sequence[NDArray[np.float32]], prior: Sequence[NDArray[np.float32]]) -> None:
        self._queries = [torch.from_numpy(query) for query in queries]
        self._prior = [torch.from_numpy(rows) for rows in prior]
        self._squares = [(rows * rows).sum(1).numpy() for rows in self._prior]

    def search(self, k: int, threads: int) -> list[list[Match]]:
        """The k cheapest matches of every query; queries are shared out to the threads."""
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda query: self._one(query, k), self._queries))

    def _one(self, query: Tensor, k: int) -> list[Match]:
        torch.set_num_threads(1)
        squares = (query * query).sum(1).numpy()
        found = []
        for number, rows in enumerate(self._prior):
            if len(query) <= len(rows):
                start, end, cost = _accumulate((query @ rows.T).numpy(), squares, self._squares[number])
                found.append(Match(cost=float(cost), trajectory=number, start=start, stop=end + 1))
        return sorted(found)[:k]


@njit(cache=True, nogil=True)
def _accumulate(gram: NDArray[Any], query: NDArray[Any], prior: NDArray[Any]) -> tuple[int, int, float]:
    n, m = gram.shape
    total = np.empty((n, m), np.float32)
    far = np.float32(np.inf)
    for i in range(n):
        for j in range(m):
            cost = np.sqrt(max(query[i] + prior[j] - np.float32(2.0) * gram[i, j], np.float32(0.0)))
            best = np.float32(0.0) if i == 0 else far
            if i > 0 and j > 0:
                best = total[i - 1, j - 1]
                if j > 1:
                    best = min(best, total[i - 1, j - 2])
            total[i, j] = cost + best
    end = int(np.argmin(total[n - 1]))
    j = end
    for i in range(n - 1, 0, -1):
        j -= 2 if j > 1 and total[i - 1, j - 2] < total[i - 1, j - 1] else 1
    return j, end, total[n - 1, end]
