"""Cameras that do what a test asks for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import numpy as np

from robot_bridge.cameras.base import CameraLost, Frame
from robot_bridge.cameras.lens import Lens


def frame(value: int, size: tuple[int, int] = (8, 6)) -> Frame:
    """A picture of one grey value, taken now."""
    return Frame(pixels=np.full((size[1], size[0], 3), value % 256, np.uint8), stamp_ns=time.time_ns())


class ScriptedCamera:
    """Gives what `script` yields: a picture, None, or an error to raise. At its end it gives nothing any more."""

    def __init__(self, script: Callable[[], Iterator[Frame | Exception | None]], *, lens: Lens | None = None) -> None:
        self.lens: Lens | None = lens
        self.closed = threading.Event()
        self._script = script
        self._steps: Iterator[Frame | Exception | None] = iter(())

    def open(self) -> str:
        self._steps = self._script()
        return "serial 7"

    def grab(self) -> Frame | None:
        step = next(self._steps, None)
        if isinstance(step, Exception):
            raise step
        if step is None:
            time.sleep(0.001)
        return step

    def close(self) -> None:
        self.closed.set()


class HangingCamera:
    """Its `grab` gives one picture and then never returns, as a driver that waits for the hardware, until `release` is set."""

    def __init__(self, pictures: int = 1) -> None:
        self.lens: Lens | None = None
        self.release = threading.Event()
        self.hangs = threading.Event()
        self.closed = threading.Event()
        self._left = pictures

    def open(self) -> str:
        return "serial 7"

    def grab(self) -> Frame | None:
        if self._left > 0:
            self._left -= 1
            return frame(self._left)
        self.hangs.set()
        self.release.wait()
        raise CameraLost("it was released")

    def close(self) -> None:
        self.closed.set()
