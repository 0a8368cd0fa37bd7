"""S-DTW in plain NumPy, one row at a time: what the compiled one is compared with, and the equations to read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.strap.sdtw import STEPS, Alignment, Steps


def align_numpy(query: NDArray[Any], prior: NDArray[Any], steps: Steps = "strap") -> Alignment | None:
    """`rl_core.strap.sdtw.align`, without its limit."""
    x, y = np.asarray(query, np.float64), np.asarray(prior, np.float64)
    squares = (x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * x @ y.T
    cost = np.sqrt(np.maximum(squares, 0))
    total = np.full(cost.shape, np.inf)
    total[0] = cost[0]
    for i in range(1, len(cost)):
        moves = [_shift(total[i - a], b) for a, b in STEPS[steps] if a and i >= a]
        total[i] = cost[i] + np.min(moves, axis=0)
        if any(a == 0 for a, _ in STEPS[steps]):  # along the row: each entry depends on the one before it
            for j in range(1, len(y)):
                total[i, j] = min(total[i, j], cost[i, j] + total[i, j - 1])
    end = int(np.argmin(total[-1]))
    if not np.isfinite(total[-1, end]):
        return None
    i, j = len(x) - 1, end
    while i > 0:
        came_from = [(total[i - a, j - b], -order, a, b) for order, (a, b) in enumerate(STEPS[steps]) if i >= a and j >= b]
        _, _, a, b = min(came_from, key=lambda each: (each[0], -each[1]))
        i, j = i - a, j - b
    return Alignment(start=int(j), stop=end + 1, cost=float(total[-1, end]))


def _shift(row: NDArray[np.float64], by: int) -> NDArray[np.float64]:
    return row if by == 0 else np.concatenate([np.full(min(by, len(row)), np.inf), row[:-by]])
