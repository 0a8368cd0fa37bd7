"""NewestWorker: a thread that works on the newest message, never a queue of them; and what its node says of its load.

A message that comes while another is worked on replaces the one that waits. It is counted, and a node that cannot keep up says so.
"""

from __future__ import annotations

import dataclasses
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from robot_bridge.nodes.latency import Latency

_WARM_UP = 2
_WINDOW = 6
_OVERLOAD = 0.1

Message = TypeVar("Message")


@dataclass
class Counts:
    """Frames: `received`, of which were `judged`, `skipped` for a newer one, dropped as `stale`, or `unusable` (size, encoding)."""

    received: int = 0
    judged: int = 0
    skipped: int = 0
    stale: int = 0
    unusable: int = 0


class NewestWorker(ABC, Generic[Message]):
    """Works on a thread of its own from `start` to `close`.

    Args:
        name: of the thread.
        failed: called with what ends it, on that thread.

    Attributes:
        counts: of messages.
        latency: stages, by name.
    """

    def __init__(self, name: str, failed: Callable[[Exception], None]) -> None:
        self.counts = Counts()
        self.latency = Latency(warm_up=_WARM_UP)
        self._failed = failed
        self._newest: Message | None = None
        self._changed = threading.Condition()
        self._warm = self._closing = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

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

    def offer(self, message: Message) -> None:
        """A message came; before the warm-up is over none is waited for."""
        with self._changed:
            if not self._warm:
                return
            self.counts.received += 1
            self.counts.skipped += self._newest is not None
            self._newest = message
            self._changed.notify()

    @abstractmethod
    def _warm_up(self) -> None:
        """What is done before the first message."""

    @abstractmethod
    def _judge(self, message: Message) -> None:
        """Works on a message."""

    def _next(self) -> Callable[[], None] | None:
        """What to do now, None for nothing; the lock is held."""
        if self._newest is None:
            return None
        message, self._newest = self._newest, None
        return partial(self._judge, message)

    def _run(self) -> None:
        try:
            self._warm_up()
            self._warm = True
            while (work := self._wait()) is not None:
                work()
        except Exception as error:
            self._failed(error)

    def _wait(self) -> Callable[[], None] | None:
        """The next thing to do; None at the end."""
        with self._changed:
            while not self._closing:
                if (work := self._next()) is not None:
                    return work
                self._changed.wait()
        return None


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
