"""SpeedScale: the share of full speed that separation guards allow."""

from __future__ import annotations

import math

LIVE_NS = 1_000_000_000


class SpeedScale:
    """Lowest value of all live senders (heard within 1 s); no sender is 1, unless separation is `required`: then it holds."""

    def __init__(self, *, required: bool = False) -> None:
        self.required = required
        self._values: dict[str, tuple[float, int]] = {}

    def receive(self, value: float, sender: str, now_ns: int) -> None:
        """Takes a sender's newest value; non-finite or outside [0, 1] counts as 0."""
        self._values[sender] = (float(value) if math.isfinite(value) and 0.0 <= value <= 1.0 else 0.0, now_ns)

    def scale(self, now_ns: int) -> float:
        """Factor on the velocity limits at monotonic time `now_ns`."""
        return min((value for value, heard_ns in self._values.values() if now_ns - heard_ns <= LIVE_NS), default=1.0)

    def hold(self, now_ns: int) -> str | None:
        """Why separation makes the arm wait, or None."""
        if self.required and all(now_ns - heard_ns > LIVE_NS for _, heard_ns in self._values.values()):
            return "separation is required, but no speed scale was received within 1 s"
        return None
