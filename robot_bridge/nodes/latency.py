"""Latencies of the stages of a loop: percentiles over the last periods, the warm-up left out."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

_KEPT = 10_000


class Latency:
    """Times of named stages in seconds, and how many periods began late.

    Args:
        warm_up: measurements of each stage that are left out at the start.
    """

    def __init__(self, *, warm_up: int = 0) -> None:
        self._warm_up = warm_up
        self._left_out: dict[str, int] = {}
        self._stages: dict[str, deque[float]] = {}
        self.periods = 0
        self.missed = 0

    def add(self, stage: str, seconds: float) -> None:
        """One measurement."""
        left_out = self._left_out.get(stage, 0)
        if left_out < self._warm_up:
            self._left_out[stage] = left_out + 1
            return
        self._stages.setdefault(stage, deque(maxlen=_KEPT)).append(seconds)

    def period(self, missed: int) -> None:
        """One period went by; `missed` deadlines passed before it began."""
        self.periods += 1
        self.missed += missed

    def milliseconds(self) -> Mapping[str, Mapping[str, float]]:
        """Stage -> {p50, p95, p99} in milliseconds."""
        return {
            stage: dict(zip(("p50", "p95", "p99"), np.percentile(np.array(times) * 1e3, (50, 95, 99)).tolist(), strict=True))
            for stage, times in list(self._stages.items())
        }
