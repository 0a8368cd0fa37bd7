"""EStop: the latch behind `/e_stop`. Only `true` stops; only a rearm that is allowed ends it."""

from __future__ import annotations

import threading
from collections.abc import Iterable

SILENT_NS = 1_000_000_000


class EStop:
    """Latched stop, written by the e-stop's own thread and read by the control loop.

    `receive` never waits for the control loop, a driver or a callback: its lock is held for the assignments alone.

    Attributes:
        required: button nodes that must be heard; one silent for 1 s stops the arm.
    """

    def __init__(self, required: Iterable[str] = (), *, now_ns: int = 0) -> None:
        self.required = tuple(required)
        self._lock = threading.Lock()
        self._heard_ns: dict[str, int] = {name: now_ns for name in self.required}
        self._last_true_ns: int | None = None
        self._reason: str | None = None

    def receive(self, pressed: bool, sender: str, now_ns: int) -> None:
        """Takes one message: `true` stops, `false` is only a heartbeat of `sender`."""
        with self._lock:
            self._heard_ns[sender] = now_ns
            if pressed:
                self._last_true_ns = now_ns
                self._reason = f"e-stop pressed at {sender}"

    def stopped(self, now_ns: int) -> str | None:
        """Why the arm is stopped, or None; a required button that fell silent latches too."""
        with self._lock:
            silent = self._silent(now_ns)
            if silent and self._reason is None:
                self._reason = f"e-stop button {silent[0]} silent for more than 1 s"
            return self._reason

    def rearm(self, now_ns: int, holds: Iterable[str] = ()) -> str | None:
        """Ends the stop.

        Args:
            now_ns: monotonic time.
            holds: names of the holds that are active.

        Returns:
            None when armed again, else why not.
        """
        active = list(holds)
        with self._lock:
            if self._last_true_ns is not None and now_ns - self._last_true_ns < SILENT_NS:
                return "an e-stop was pressed within the last second; release it first"
            silent = self._silent(now_ns)
            if silent:
                return f"required e-stop buttons are silent: {silent}"
            if active:
                return f"holds are active: {active}"
            self._reason = None
            return None

    def _silent(self, now_ns: int) -> list[str]:
        return [name for name in self.required if now_ns - self._heard_ns[name] > SILENT_NS]
