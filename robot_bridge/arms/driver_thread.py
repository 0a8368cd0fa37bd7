"""DriverThread: an arm's calls, which may block, on a thread of their own; the newest command wins."""

from __future__ import annotations

import threading
import time

import numpy as np
from numpy.typing import NDArray

from robot_bridge.arms.base import Arm, ArmState

_RECONNECT_S = 0.5


class DriverThread:
    """Sends the newest command and reads the state after it. `send`, `latest`, `blocked_s` and `error` never wait for the arm.

    A call that raises ends driving with `error`; the thread then tries to connect and read again twice a second, and `error`
    goes back to None once that worked. Whether motion may go on then is for the command filter to say.
    """

    def __init__(self, arm: Arm, period_s: float) -> None:
        self._arm = arm
        self._period_s = period_s
        self._condition = threading.Condition()
        self._command: NDArray[np.float64] | None = None
        self._state: ArmState | None = None
        self._error: str | None = None
        self._since = time.monotonic()
        self._in_call = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="arm-driver", daemon=True)

    def start(self) -> None:
        """Begins to read."""
        self._thread.start()

    def close(self, timeout_s: float = 1.0) -> None:
        """Ends the thread; one blocked in a driver call is left behind as a daemon."""
        with self._condition:
            self._closed = True
            self._condition.notify()
        self._thread.join(timeout_s)

    def send(self, positions: NDArray[np.float64]) -> None:
        """Replaces whatever command was not taken yet."""
        with self._condition:
            self._command = positions
            self._condition.notify()

    def discard(self) -> None:
        """Forgets a command that was not taken yet."""
        with self._condition:
            self._command = None

    @property
    def latest(self) -> ArmState | None:
        """The newest state read; None before the first."""
        return self._state

    @property
    def error(self) -> str | None:
        """Why the arm does not answer; None while it does."""
        return self._error

    @property
    def blocked_s(self) -> float:
        """For how long the present driver call has not returned; 0 between calls."""
        return time.monotonic() - self._since if self._in_call else 0.0

    def _run(self) -> None:
        while True:
            with self._condition:
                if self._command is None and not self._closed:
                    self._condition.wait(_RECONNECT_S if self._error else self._period_s)
                if self._closed:
                    return
                command, self._command = self._command, None
            self._since, self._in_call = time.monotonic(), True
            try:
                if self._error:
                    self._arm.connect()
                elif command is not None:
                    self._arm.command(command, self._period_s)
                self._state = self._arm.read()
                self._error = None
            except Exception as error:  # whatever a vendor's library raises, the arm did not do what was asked
                self._error = f"{type(error).__name__}: {error}"
            finally:
                self._in_call = False
