"""The thread on which a radar's echoes are judged: the newest window, never a queue of them, and nothing that is too old."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from std_msgs.msg import Float32MultiArray

from robot_bridge.auxiliary.monitoring.rfmamba.interface import HumanRadar, Person, RadarError, echo_of
from robot_bridge.nodes.newest_worker import NewestWorker
from robot_bridge.nodes.radar_liveness import RadarLiveness
from robot_bridge.nodes.radar_messages import numbers_of

Echo = NDArray[np.complex64]
Window = tuple[Float32MultiArray, int]
"""An echo, and when its newest frame was measured, nanoseconds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """A person, and the source time of the frame that it is about."""

    stamp_ns: int
    person: Person


class _Empty:
    """Windows of the cell with nobody in it that are being gathered."""

    def __init__(self, windows: int, done: Callable[[Echo], None], given_up: Callable[[str], None]) -> None:
        self.windows, self.done, self.given_up = windows, done, given_up
        self.gathered: list[Echo] = []


class HumanRadarWorker(NewestWorker[Window]):
    """Works on a thread of its own from `start` to `close`; is offered windows.

    Args:
        radar: what the registry's `load` gave.
        seen: called with every person seen, on this thread.
        failed: called with what ends it.
        now_ns: source time.
        max_age_s: a window that would be older than this when its answer is there is dropped: before it is judged, or after.
        warmed: called before the first window.
        refused: called with why a window is unusable, on this thread.

    Attributes:
        counts: of windows.
        latency: stages `perceive` (the method alone) and `age` (from the frame that an answer is about to the answer).
        background: (tx, rx, frequency), the mean echo of the empty cell; None before it is known, and nothing is judged.
        unusable: why the newest unusable window was that.
    """

    def __init__(
        self,
        radar: HumanRadar,
        *,
        seen: Callable[[Seen], None],
        failed: Callable[[Exception], None],
        now_ns: Callable[[], int],
        max_age_s: float,
        warmed: Callable[[], None] = lambda: None,
        refused: Callable[[str], None] = lambda why: None,
    ) -> None:
        super().__init__("human radar", failed)
        self.background: Echo | None = None
        self.unusable = ""
        self._radar, self._seen, self._now_ns, self._warmed, self._refused = radar, seen, now_ns, warmed, refused
        self._max_age_ns = int(max_age_s * 1e9)
        self._behind_ns = round((radar.geometry.frames - 1 - radar.current) * radar.geometry.period_s * 1e9)
        self._empty: _Empty | None = None
        self._liveness = RadarLiveness()

    def gather_background(self, windows: int, done: Callable[[Echo], None], given_up: Callable[[str], None]) -> None:
        """The next `windows` windows are of the empty cell; nothing is judged meanwhile.

        Args:
            windows: how many.
            done: called with their mean, on this thread.
            given_up: called instead, with why, on the thread that asks anew or closes.
        """
        with self._changed:
            before, self.background, self._empty = self._empty, None, _Empty(windows, done, given_up)
        if before is not None:
            before.given_up("the empty cell was asked for anew")

    def close(self) -> None:
        """Ends; a background that is being gathered is given up."""
        super().close()
        with self._changed:
            empty, self._empty = self._empty, None
        if empty is not None:
            empty.given_up("the node was deactivated before all windows had come")

    def _warm_up(self) -> None:
        geometry = self._radar.geometry
        self._radar.perceive(np.zeros(geometry.shape, np.complex64), np.zeros(geometry.shape[1:], np.complex64))
        self._warmed()

    def _judge(self, message: Window) -> None:
        numbers, stamp_ns = message
        about_ns = stamp_ns - self._behind_ns
        if not self._fresh(about_ns):
            self.counts.stale += 1
            return
        with self._changed:
            empty, background = self._empty, self.background
        try:
            echo = echo_of(numbers_of(numbers), self._radar.geometry)
            self._liveness.require(echo, background)
        except RadarError as error:
            return self._refuse(str(error))
        if empty is not None:
            self._gather(empty, echo)
        elif background is None:
            self._refuse("the echo of the empty cell is not known")
        else:
            start = time.perf_counter()
            person = self._radar.perceive(echo, background)
            self.latency.add("perceive", time.perf_counter() - start)
            self.latency.add("age", (self._now_ns() - about_ns) * 1e-9)
            if self._empty is not None or not self._fresh(about_ns):  # the background may be wrong since
                self.counts.stale += 1
                return
            self._seen(Seen(stamp_ns=about_ns, person=person))
            self.counts.judged += 1

    def _refuse(self, why: str) -> None:
        self.unusable = why
        self.counts.unusable += 1
        self._refused(why)

    def _gather(self, empty: _Empty, echo: Echo) -> None:
        empty.gathered.append(echo.mean(axis=0))
        if len(empty.gathered) < empty.windows:
            return
        background = np.mean(empty.gathered, axis=0).astype(np.complex64)
        with self._changed:
            if self._empty is not empty:  # another was asked for meanwhile
                return
            self.background, self._empty = background, None
        empty.done(background)

    def _fresh(self, about_ns: int) -> bool:
        return abs(self._now_ns() - about_ns) <= self._max_age_ns
