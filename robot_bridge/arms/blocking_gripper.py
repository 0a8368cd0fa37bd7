"""BlockingGripper: a vendor's gripper call that returns only when the fingers have stopped, off the arm's path; newest wins."""

from __future__ import annotations

import threading
from collections.abc import Callable


class BlockingGripper:
    """Runs `move(opening)` on a thread of its own; commands that came while it was busy are replaced by the newest.

    Args:
        move: the vendor's call, metres of opening; may block for seconds and may raise.

    Attributes:
        error: what the last call raised; None after one that worked.
    """

    def __init__(self, move: Callable[[float], object]) -> None:
        self._move = move
        self._condition = threading.Condition()
        self._wanted: float | None = None
        self._closed = False
        self.error: str | None = None
        self._thread = threading.Thread(target=self._run, name="gripper", daemon=True)
        self._thread.start()

    def command(self, opening: float) -> None:
        """Asks for an opening; returns at once."""
        with self._condition:
            self._wanted = opening
            self._condition.notify()

    def close(self, timeout_s: float = 1.0) -> None:
        """Ends the thread; one blocked in the vendor's call is left behind as a daemon."""
        with self._condition:
            self._closed = True
            self._condition.notify()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        sent: float | None = None
        while True:
            with self._condition:
                while not self._closed and (self._wanted is None or self._wanted == sent):
                    self._condition.wait()
                if self._closed:
                    return
                sent = self._wanted
            assert sent is not None
            try:
                self._move(sent)
                self.error = None
            except Exception as error:  # whatever a vendor's library raises; the driver reports it
                self.error = f"{type(error).__name__}: {error}"
