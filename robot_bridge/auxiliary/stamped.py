"""StampedRecogniser: a recogniser that remembers when it saw what it saw."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from robot_bridge.auxiliary.protocols import AdaptiveRecogniser, Frames, Prediction


@runtime_checkable
class StampedRecogniser(AdaptiveRecogniser, Protocol):
    """A node calls `remember_at` in place of `remember`."""

    def remember_at(self, stamp_ns: int, frames: Frames, prediction: Prediction) -> None:
        """See `AdaptiveRecogniser.remember`; the frame was taken at `stamp_ns`."""
        ...
