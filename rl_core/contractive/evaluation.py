"""How good a learned motion is: on the demonstrated starts, and on starts drawn around them. Nothing is smoothed before it is judged.

Lengths are in units of the motion's size. DTW is the smallest sum of Euclidean distances along a warping of the two motions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.training.seeding import numpy_generator

Array = NDArray[np.float64]
Rollouts = Callable[[Array], Array]
"""Starts (N, n_y) -> motions (N, T, n_y)."""
RADII = (0.05, 0.1, 0.2)
STARTS = 100
ARRIVED = 0.05
"""Distance from the goal above which a motion counts as stalled or diverging."""
FAR = 1e6
"""Motions are cut here, so that a diverging one has figures."""


def dtw(a: Array, b: Array) -> Array:
    """(N,) of motions a and b, (N, T, n_y) each; anti-diagonal by anti-diagonal, all rows at once."""
    cost = np.linalg.norm(a[:, :, None] - b[:, None], axis=-1)
    rows, n, m = cost.shape
    two_back = np.full((rows, n + 1), np.inf)
    two_back[:, 0] = 0.0
    one_back = np.full((rows, n + 1), np.inf)
    for k in range(2, n + m + 1):
        low, high = max(1, k - m), min(n, k - 1)
        i = np.arange(low, high + 1)
        current = np.full((rows, n + 1), np.inf)
        best = np.minimum(np.minimum(one_back[:, i - 1], one_back[:, i]), two_back[:, i - 1])
        current[:, i] = cost[:, i - 1, k - i - 1] + best
        two_back, one_back = one_back, current
    return one_back[:, n]


def drawn_starts(starts: Array, radius: float, seed: int, count: int = STARTS) -> tuple[Array, NDArray[np.int64]]:
    """`count` starts, each a demonstrated one plus uniform noise of that half-width, and the demonstration each belongs to."""
    of = np.arange(count) % len(starts)
    noise = numpy_generator(seed, "starts", round(radius * 1000)).uniform(-radius, radius, (count, starts.shape[1]))
    return starts[of] + noise, of


def judge(rollouts: Rollouts, demonstrations: Array, *, seed: int) -> dict[str, Any]:
    """Figures of a motion learned from `demonstrations` (N, T, n_y); names of those that depend on the radius end in it.

    `jump` is the mean distance to the nominal motion after one step, as a share of that at the start; `contracted_K` the same after K
    steps; `stray_share` the share of motions that end further than `ARRIVED` from the goal.
    """
    nominal = _finite(rollouts(demonstrations[:, 0]))
    figures: dict[str, Any] = {
        "mse": float(((nominal - demonstrations) ** 2).mean()),
        "dtw": float(dtw(nominal, demonstrations).mean()),
        "end": float(np.linalg.norm(nominal[:, -1], axis=1).mean()),
    }
    for radius in RADII:
        starts, of = drawn_starts(demonstrations[:, 0], radius, seed)
        motions = _finite(rollouts(starts))
        apart = np.linalg.norm(motions - nominal[of], axis=-1).mean(axis=0)
        ends = np.linalg.norm(motions[:, -1], axis=1)
        figures |= {
            f"oos_mse_{radius}": float(((motions - demonstrations[of]) ** 2).mean()),
            f"oos_dtw_{radius}": float(dtw(motions, demonstrations[of]).mean()),
            f"oos_end_{radius}": float(ends.mean()),
            f"jump_{radius}": float(apart[1] / apart[0]),
            f"contracted_10_{radius}": float(apart[min(10, len(apart) - 1)] / apart[0]),
            f"contracted_20_{radius}": float(apart[min(20, len(apart) - 1)] / apart[0]),
            f"stray_share_{radius}": float((ends > ARRIVED).mean()),
            f"diverging_share_{radius}": float((ends > 1.0).mean()),
        }
    return figures


def _finite(motions: Array) -> Array:
    return np.clip(np.nan_to_num(motions, nan=FAR, posinf=FAR, neginf=-FAR), -FAR, FAR)
