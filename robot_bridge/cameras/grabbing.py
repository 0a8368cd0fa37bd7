"""Grabber: reads one camera on a thread of its own, and opens it again when it freezes.

Nothing here waits for the camera. A call into a driver that never returns is left behind with its thread, and the camera is opened
anew on another, by the same serial number, at growing intervals.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from robot_bridge.cameras.base import Camera, Frame
from robot_bridge.cameras.lens import Lens

State = Literal["opening", "running", "frozen", "waiting"]

_OPEN_S = 10.0
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 8.0
_MOST_THREADS = 3


class Grabber:
    """Hands every new picture of a camera on; `check` has to be called some times a second.

    Args:
        make_camera: makes the camera, once for every time it is opened.
        deliver: called with every new picture and what the camera knows of its lens, on the grabbing thread.
        failed: called with the error where the camera never gave a picture: it cannot be opened, or is set up wrongly.
        frozen_s: a camera without a new picture for so long is frozen.
        noisy: a picture equal to the one before, to the last bit, is not new: a sensor's noise never repeats.
        clock: monotonic seconds.

    Attributes:
        state: `opening`; `running`; `frozen`: open, and no new picture for `frozen_s`; `waiting`: closed until the next try.
        identity: what the camera is known by; empty before it was first open.
        reopened: times it was opened again.
        repeated: pictures that were not new.
        last_error: why it was last lost; empty where it never was.
    """

    def __init__(
        self,
        make_camera: Callable[[], Camera],
        *,
        deliver: Callable[[Frame, Lens | None], None],
        failed: Callable[[Exception], None],
        frozen_s: float,
        noisy: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state: State = "opening"
        self.identity = ""
        self.reopened = self.repeated = 0
        self.last_error = ""
        self._make_camera = make_camera
        self._deliver = deliver
        self._failed = failed
        self._frozen_s = frozen_s
        self._noisy = noisy
        self._clock = clock
        self._lock = threading.Lock()
        self._turn = 0  # of the thread whose pictures count; a thread of an earlier one has been left behind
        self._ever = False
        self._heard_s = 0.0
        self._last: NDArray[np.uint8] | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._due_s = 0.0
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Opens the camera and reads it from now on."""
        with self._lock:
            self._begin()

    def check(self) -> None:
        """Finds out whether the camera is frozen, and opens it again when it is time."""
        with self._lock:
            now, silent_s = self._clock(), self._clock() - self._heard_s
            if self.state == "running" and silent_s > self._frozen_s:
                self._lose(f"no new picture for {silent_s:.1f} s", "frozen")
            elif self.state == "opening" and silent_s > _OPEN_S:
                self._lose(f"not open after {silent_s:.1f} s", "frozen")
            elif self.state in ("frozen", "waiting") and now >= self._due_s:
                self._threads = [thread for thread in self._threads if thread.is_alive()]
                if len(self._threads) < _MOST_THREADS:
                    self.reopened += 1
                    self._begin()

    def close(self, timeout_s: float = 0.2) -> None:
        """Ends the thread; one that hangs in its driver is left behind."""
        with self._lock:
            self._turn += 1
            self.state = "waiting"
            self._due_s = float("inf")
        for thread in self._threads:
            thread.join(timeout_s / len(self._threads))

    # -- the lock is held -----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self.state = "opening"
        self._turn += 1
        self._heard_s = self._clock()
        self._last = None
        thread = threading.Thread(target=self._read, args=(self._turn,), name="grab", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _lose(self, why: str, state: State) -> None:
        self.state, self.last_error = state, why
        self._turn += 1
        self._due_s = self._clock() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    # -- the grabbing thread --------------------------------------------------------------------------------------------

    def _read(self, turn: int) -> None:
        camera: Camera | None = None
        try:
            camera = self._make_camera()
            identity = camera.open()
            with self._lock:
                if turn == self._turn:
                    self.identity, self.state, self._heard_s = identity, "running", self._clock()
            while turn == self._turn:
                frame = camera.grab()
                if frame is not None and self._is_new(frame, turn):
                    self._deliver(frame, camera.lens)
        except Exception as error:
            with self._lock:
                if turn != self._turn:
                    return
                self._lose(str(error), "waiting")
                ever = self._ever
            if not ever:
                self._failed(error)
        finally:
            if camera is not None:
                with contextlib.suppress(Exception):  # what is broken may not close, and is opened anew all the same
                    camera.close()

    def _is_new(self, frame: Frame, turn: int) -> bool:
        repeats = self._noisy and self._last is not None and np.array_equal(frame.pixels, self._last)
        with self._lock:
            if turn != self._turn:
                return False
            if repeats:
                self.repeated += 1
                return False
            self._last = frame.pixels
            self._ever = True
            self._heard_s = self._clock()
            self._pause_s = _FIRST_PAUSE_S
            return True
