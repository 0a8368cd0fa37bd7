"""Target: the points the filter let through, on the monotonic clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
    """What the output follows.

    Attributes:
        points: (K, J) positions, limits applied.
        velocities: (K, J) velocity at each point; 0 at the last.
        times_ns: when each is to be reached, monotonic.
        expires_ns: from then on it no longer counts, monotonic.
    """

    points: list[list[float]]
    velocities: list[list[float]]
    times_ns: list[int]
    expires_ns: int

    @classmethod
    def through(
        cls, points: NDArray[np.float64], start: NDArray[np.float64], times_s: NDArray[np.float64], *, from_ns: int, valid_s: float
    ) -> Target:
        """A target through `points` (K, J) at `times_s` after `from_ns`, coming from `start`.

        The velocity at an inner point is the mean slope around it, and 0 where the slope changes sign, so that a joint never
        swings past a point at which it turns (Fritsch and Carlson 1980).
        """
        velocities = np.zeros_like(points)
        if len(points) > 1:
            slopes = np.diff(points, axis=0, prepend=start[None]) / np.diff(times_s, prepend=0.0)[:, None]
            before, after = slopes[:-1], slopes[1:]
            velocities[:-1] = np.where(before * after > 0, (before + after) / 2, 0.0)
        return cls(
            points=points.tolist(),
            velocities=velocities.tolist(),
            times_ns=[from_ns + round(t * 1e9) for t in times_s.tolist()],
            expires_ns=from_ns + round(min(float(times_s[-1]), valid_s) * 1e9),
        )

    def segment(self, now_ns: int) -> int:
        """Index of the point that is to be reached next."""
        for index, time_ns in enumerate(self.times_ns):
            if time_ns > now_ns:
                return index
        return len(self.times_ns) - 1
