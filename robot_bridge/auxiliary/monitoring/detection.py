"""How well a score tells known inputs from unknown ones. Every score here is higher for known inputs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rl_core.errors import ArmstackError

Scores = NDArray[np.floating]


class DetectionError(ArmstackError):
    """Scores that nothing can be computed from."""


def auroc(known: Scores, unknown: Scores) -> float:
    """Probability that a known input scores above an unknown one; equal scores count half.

    Raises:
        DetectionError: one of the sides is empty or not finite.
    """
    _check(known, unknown)
    both = np.concatenate((known, unknown))
    _, inverse, counts = np.unique(both, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]  # mean rank of equal scores, from 1
    n, m = len(known), len(unknown)
    return float((ranks[:n].sum() - n * (n + 1) / 2) / (n * m))


def known_threshold(known: Scores, accepted: float = 0.95) -> float:
    """The highest threshold at which at least `accepted` of these known inputs score at or above it. Unknown inputs take no part.

    Raises:
        DetectionError: no scores, or not finite.
    """
    _check(known)
    ordered = np.sort(known)[::-1]
    return float(ordered[int(np.ceil(accepted * len(ordered))) - 1])


def false_accept_rate(known: Scores, unknown: Scores, accepted: float = 0.95) -> float:
    """FPR95: share of unknown inputs at or above the threshold that accepts 95 % of the known ones."""
    _check(known, unknown)
    return float(np.mean(unknown >= known_threshold(known, accepted)))


def _check(*sides: Scores) -> None:
    for scores in sides:
        if not len(scores) or not np.isfinite(scores).all():
            raise DetectionError(f"{len(scores)} scores, {int((~np.isfinite(scores)).sum())} not finite; valid: at least one, all finite")
