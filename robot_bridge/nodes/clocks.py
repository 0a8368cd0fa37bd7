"""Clocks of a simulated arm in real time."""

from __future__ import annotations

import time


class ScaledClock:
    """Wall time that runs `factor` times as fast from its construction on; with factor 1 the stamps are wall time's own."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor
        self._monotonic_ns = time.monotonic_ns()
        self._wall_ns = time.time_ns()

    def _elapsed_ns(self) -> int:
        elapsed = time.monotonic_ns() - self._monotonic_ns
        return elapsed if self.factor == 1.0 else round(elapsed * self.factor)

    def monotonic_ns(self) -> int:
        """See `robot_bridge.control.clock.Clock.monotonic_ns`."""
        return self._elapsed_ns()

    def source_ns(self) -> int:
        """See `robot_bridge.control.clock.Clock.source_ns`."""
        return time.time_ns() if self.factor == 1.0 else self._wall_ns + self._elapsed_ns()
