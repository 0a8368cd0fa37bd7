"""How far a long step is, in lines for people."""

from __future__ import annotations

import time
from collections.abc import Callable

_PERIOD_S = 10.0


class ToldProgress:
    """Says every ten seconds how much is done and how long the rest takes; a short step says nothing.

    Args:
        say: gets the lines.
        what: is done.
        clock: seconds.
    """

    def __init__(self, say: Callable[[str], None], what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._what, self._clock = say, what, clock
        self._begun = self._last = clock()
        self._before: int | None = None

    def __call__(self, done: int, total: int) -> None:
        """Told after each piece of the step; `done` is 1 or more."""
        now = self._clock()
        if self._before is None:
            self._before = done - 1  # a step that goes on where it was stopped begins there
        if done < total and now - self._last >= _PERIOD_S:
            self._last = now
            self._say(
                f"{self._what}: {done} of {total}, about {time_left(now - self._begun, done - self._before, total - self._before)} left"
            )


def time_left(spent_s: float, done: int, total: int) -> str:
    """How long the rest takes where every piece takes as long."""
    left_s = spent_s / done * (total - done)
    return f"{left_s:.0f} s" if left_s < 100 else f"{left_s / 60:.0f} min"
