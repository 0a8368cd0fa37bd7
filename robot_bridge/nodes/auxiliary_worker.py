"""The thread a method works on: the newest frame, never a queue of them, and between frames what is asked of it.

A frame that comes while another is judged replaces the one that waits; one that is too old when its turn comes is dropped. Both are
counted, and a node that cannot keep up says so.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import Image

from robot_bridge.auxiliary.explanations import Explainer
from robot_bridge.auxiliary.payloads import FrameRing
from robot_bridge.auxiliary.protocols import AdaptiveRecogniser, Prediction
from robot_bridge.auxiliary.stamped import StampedRecogniser
from robot_bridge.nodes.latency import Latency
from robot_bridge.nodes.messages import MessageError, image_to_rgb
from robot_bridge.nodes.stamps import to_ns

_WAITING = 8
_WARM_UP = 2
_WINDOW = 6
_OVERLOAD = 0.1


@dataclass(frozen=True, kw_only=True, eq=False)
class Judged:
    """A frame (H, W, 3) and what the method says of it: a prediction of one row, and its words where it is an `Explainer`."""

    stamp_ns: int
    frame: NDArray[np.uint8]
    prediction: Prediction
    classes: tuple[str, ...]
    explanation: Mapping[str, Any] | None = None

    @property
    def scores(self) -> dict[str, float]:
        """Class -> score."""
        return dict(zip(self.classes, map(float, self.prediction.scores[0]), strict=True))

    @property
    def values(self) -> dict[str, float]:
        """Name -> further number."""
        return {name: float(numbers[0]) for name, numbers in self.prediction.values.items()}


@dataclass
class Counts:
    """Frames: `received`, of which were `judged`, `skipped` for a newer one, dropped as `stale`, or `unusable` (size, encoding)."""

    received: int = 0
    judged: int = 0
    skipped: int = 0
    stale: int = 0
    unusable: int = 0


class Busy(Exception):
    """More is asked than can wait."""


class AuxiliaryWorker:
    """Works on a thread of its own from `start` to `close`.

    Args:
        loaded: what the registry's `load` gave.
        judged: called with every judged frame, on this thread.
        failed: called with what ends it.
        now_ns: source time.
        max_age_s: an older frame is dropped.
        shape: (H, W, 3) of the frames; None where there is no camera.
        condition: what `predict` is told.
        warmed: called with the names of all numbers of a prediction, before the first frame.

    Attributes:
        loaded, shape: as given.
        counts: of frames.
        latency: stages `predict` (the method alone) and `age` (from a frame's stamp to its result).
        frames: those that were judged, by stamp.
    """

    def __init__(
        self,
        loaded: Any,
        *,
        judged: Callable[[Judged], None],
        failed: Callable[[Exception], None],
        now_ns: Callable[[], int],
        max_age_s: float,
        shape: tuple[int, ...] | None,
        condition: Callable[[], Mapping[str, Any] | None] = lambda: None,
        warmed: Callable[[tuple[str, ...]], None] = lambda names: None,
    ) -> None:
        self.counts = Counts()
        self.latency = Latency(warm_up=_WARM_UP)
        self.frames = FrameRing()
        self.loaded = loaded
        self._judged, self._failed, self._now_ns, self._warmed, self._condition = judged, failed, now_ns, warmed, condition
        self._max_age_ns = int(max_age_s * 1e9)
        self.shape = shape
        self._newest: Image | None = None
        self._asked: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._warm = self._closing = False
        self._thread = threading.Thread(target=self._run, name="auxiliary", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def close(self) -> None:
        """Ends after what is being done now; what waits is forgotten."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(1.0)

    def offer(self, message: Image) -> None:
        """A frame came; before the warm-up is over none is waited for."""
        with self._changed:
            if not self._warm:
                return
            self.counts.received += 1
            self.counts.skipped += self._newest is not None
            self._newest = message
            self._changed.notify()

    def ask(self, work: Callable[[], None]) -> None:
        """Runs `work` on this thread, between two frames.

        Raises:
            Busy: as much waits as may.
        """
        with self._changed:
            if len(self._asked) >= _WAITING:
                raise Busy(f"{_WAITING} requests wait already; ask again when they are answered")
            self._asked.append(work)
            self._changed.notify()

    def _run(self) -> None:
        try:
            if self.shape is not None:
                first = self._predict(np.zeros((1, *self.shape), np.uint8))
                self._warmed((*self.loaded.classes, *first.values))
            self._warm = True
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._closing or self._asked or self._newest is not None)
                    if self._closing:
                        return
                    work = self._asked.popleft() if self._asked else None
                    message = None
                    if work is None:
                        message, self._newest = self._newest, None
                if work is not None:
                    work()
                elif message is not None:
                    self._judge(message)
        except Exception as error:
            self._failed(error)

    def _predict(self, frames: NDArray[np.uint8]) -> Prediction:
        prediction: Prediction = self.loaded.predict(frames, self._condition())
        prediction.check(len(frames), self.loaded.classes)
        return prediction

    def _judge(self, message: Image) -> None:
        stamp_ns = to_ns(message.header.stamp)
        if not abs(self._now_ns() - stamp_ns) <= self._max_age_ns:
            self.counts.stale += 1
            return
        try:
            frame = image_to_rgb(message)
        except MessageError:
            self.counts.unusable += 1
            return
        if frame.shape != self.shape:
            self.counts.unusable += 1
            return
        start = time.perf_counter()
        prediction = self._predict(frame[None])
        explanation = self.loaded.explain(frame) if isinstance(self.loaded, Explainer) else None
        self.latency.add("predict", time.perf_counter() - start)
        self.frames.put(stamp_ns, frame)
        classes = tuple(self.loaded.classes)
        self._judged(Judged(stamp_ns=stamp_ns, frame=frame, prediction=prediction, classes=classes, explanation=explanation))
        self.counts.judged += 1
        self.latency.add("age", (self._now_ns() - stamp_ns) * 1e-9)
        if isinstance(self.loaded, StampedRecogniser):
            self.loaded.remember_at(stamp_ns, frame[None], prediction)
        elif isinstance(self.loaded, AdaptiveRecogniser):
            self.loaded.remember(frame[None], prediction)


class Load:
    """Frames a second over the last reports, and whether more come than can be judged.

    Args:
        now_s: monotonic time at which the counts began at 0.
    """

    def __init__(self, now_s: float) -> None:
        self._samples: deque[tuple[float, Counts]] = deque([(now_s, Counts())], maxlen=_WINDOW)

    def report(self, now_s: float, counts: Counts) -> tuple[dict[str, float], str]:
        """Rates `received_hz` and `judged_hz` since the oldest report kept, and the overload in words (empty: none)."""
        self._samples.append((now_s, dataclasses.replace(counts)))
        (then_s, then), (_, now) = self._samples[0], self._samples[-1]
        rates = {f"{name}_hz": (getattr(now, name) - getattr(then, name)) / (now_s - then_s) for name in ("received", "judged")}
        if now.skipped - then.skipped <= _OVERLOAD * (now.received - then.received):
            return rates, ""
        return rates, (
            f"overloaded: judges {rates['judged_hz']:.1f} of {rates['received_hz']:.1f} frames/s and skips the rest; "
            "use a faster method or a slower camera (rate_hz)"
        )
