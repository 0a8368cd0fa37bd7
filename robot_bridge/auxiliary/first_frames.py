"""FirstFrames: a verdict on what lies before the arm, from an episode's first frames, before the hand is in the way."""

from __future__ import annotations

import threading
from collections.abc import Mapping


class FirstFrames:
    """The mean of the numbers of an episode's first frames; it stands until the next episode. For several threads.

    Args:
        wanted: so many frames make a verdict.
    """

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self._lock = threading.Lock()
        self._episode: int | None = None
        self._since_ns = 0
        self._rows: list[dict[str, float]] = []

    def begin(self, episode: int, stamp_ns: int) -> bool:
        """The episode of that index began at source time `stamp_ns`; whether it is a new one, whose verdict is still to come."""
        with self._lock:
            if episode == self._episode:
                return False
            self._episode, self._since_ns, self._rows = episode, stamp_ns, []
            return True

    def add(self, stamp_ns: int, numbers: Mapping[str, float]) -> None:
        """Takes a frame's numbers, unless it is older than the episode or the verdict is there."""
        with self._lock:
            if self._episode is not None and stamp_ns >= self._since_ns and len(self._rows) < self.wanted:
                self._rows.append(dict(numbers))

    @property
    def missing(self) -> str:
        """Why there is no verdict yet; empty where there is one."""
        with self._lock:
            if self._episode is None:
                return "no episode has begun"
            return "" if len(self._rows) == self.wanted else f"looked at {len(self._rows)} of an episode's first {self.wanted} frames"

    @property
    def mean(self) -> dict[str, float]:
        """Name -> mean over the frames so far; NaN where one frame has not got it."""
        with self._lock:
            names = {name for row in self._rows for name in row}
            return {name: sum(row.get(name, float("nan")) for row in self._rows) / len(self._rows) for name in names}
