"""Soft thresholds: 1 where a number is large enough, falling off below (the one-sided forms of dm_control's `rewards.tolerance`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


def linear(x: Array, at_least: float, *, margin: float, value_at_margin: float) -> Array:
    """1 where x >= at_least; below, 1 - (1 - value_at_margin) (at_least - x) / margin, and never below 0."""
    below = (at_least - x) / margin
    return np.clip(1.0 - (1.0 - value_at_margin) * below, 0.0, 1.0)


def gaussian(x: Array, at_least: float, *, margin: float, value_at_margin: float = 0.1) -> Array:
    """1 where x >= at_least; below, a Gaussian that has fallen to `value_at_margin` a `margin` away: value_at_margin^(d^2)."""
    below = np.maximum((at_least - x) / margin, 0.0)
    return np.power(value_at_margin, np.square(below))


def within(x: Array, low: float, high: float) -> Array:
    """1 where low <= x <= high, 0 elsewhere."""
    return ((x >= low) & (x <= high)).astype(np.float64)
