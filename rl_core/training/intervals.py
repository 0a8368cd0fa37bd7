"""Confidence intervals of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

_Z95 = 1.959963984540054


def wilson_interval(successes: int, trials: int, *, z: float = _Z95) -> tuple[float, float]:
    """Score interval of a proportion (Wilson 1927): (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n).

    Raises:
        ValueError: not 0 <= successes <= trials with at least one trial.
    """
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials, valid: 0 <= successes <= trials, at least one trial")
    p = successes / trials
    centre = p + z * z / (2 * trials)
    spread = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    low = (centre - spread) / scale if successes else 0.0
    high = (centre + spread) / scale if successes < trials else 1.0
    return low, high


def bootstrap_interval(values: Sequence[float], *, seed: int = 0, resamples: int = 10_000) -> tuple[float, float]:
    """95 % percentile bootstrap interval of the mean (Efron 1979), repeatable by seed.

    Raises:
        ValueError: no values.
    """
    if not len(values):
        raise ValueError("no values, valid: at least one")
    data = np.asarray(values, dtype=np.float64)
    generator = np.random.Generator(np.random.PCG64(seed))
    means = data[generator.integers(0, len(data), (resamples, len(data)))].mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)
