"""Clocks the control path is driven by; injected, so that tests and lockstep simulation own time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Two times in nanoseconds: `monotonic_ns` for ages of what was received, `source_ns` on the clock of stamps."""

    def monotonic_ns(self) -> int:
        """Never jumps, never goes back; says nothing about other machines."""
        ...

    def source_ns(self) -> int:
        """The clock that stamps observations and commands."""
        ...


class SystemClock:
    """Monotonic time for ages, wall time for stamps."""

    def monotonic_ns(self) -> int:
        """See `Clock.monotonic_ns`."""
        return time.monotonic_ns()

    def source_ns(self) -> int:
        """See `Clock.source_ns`."""
        return time.time_ns()


@dataclass
class ManualClock:
    """One time for both, moved by whoever owns it (a lockstep simulation, a test)."""

    now_ns: int = 0

    def advance(self, seconds: float) -> None:
        """Moves time on by `seconds`."""
        self.now_ns += round(seconds * 1e9)

    def monotonic_ns(self) -> int:
        """See `Clock.monotonic_ns`."""
        return self.now_ns

    def source_ns(self) -> int:
        """See `Clock.source_ns`."""
        return self.now_ns
