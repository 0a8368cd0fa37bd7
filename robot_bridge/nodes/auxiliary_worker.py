"""The thread a method works on: the newest frame, never a queue of them, and between frames what is asked of it.

A frame that comes while another is judged replaces the one that waits; one that is too old when its turn comes is dropped. Both are
counted, and a node that cannot keep up says so.
"""

from __future__ import annotations

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
from robot_bridge.nodes.messages import MessageError, image_to_rgb
from robot_bridge.nodes.newest_worker import NewestWorker
from robot_bridge.nodes.stamps import to_ns

_WAITING = 8


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


class Busy(Exception):
    """More is asked than can wait."""


class AuxiliaryWorker(NewestWorker[Image]):
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
        super().__init__("auxiliary", failed)
        self.frames = FrameRing()
        self.loaded = loaded
        self._judged, self._now_ns, self._warmed, self._condition = judged, now_ns, warmed, condition
        self._max_age_ns = int(max_age_s * 1e9)
        self.shape = shape
        self._asked: deque[Callable[[], None]] = deque()

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

    def _next(self) -> Callable[[], None] | None:
        return self._asked.popleft() if self._asked else super()._next()

    def _warm_up(self) -> None:
        if self.shape is not None:
            first = self._predict(np.zeros((1, *self.shape), np.uint8))
            self._warmed((*self.loaded.classes, *first.values))

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
