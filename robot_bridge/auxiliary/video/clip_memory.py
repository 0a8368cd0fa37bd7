"""ClipMemory: a rolling index of what one camera saw, as clips of the newest frames that overlap by half."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from robot_bridge.auxiliary.video.ranking import best


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """One clip: stamps of its first and last frame (ns), and its unit vector (d,)."""

    start_ns: int
    end_ns: int
    vector: NDArray[np.float32]


class ClipMemory:
    """Takes frames as input tokens of the first block, in the order of their stamps.

    Args:
        encode: tokens of a clip (F, 1 + P, w) -> unit vector (d,).
        frames: of a clip.
        fps: frames a second that are taken; those between are left out.
        capacity: clips that are kept.
    """

    def __init__(self, encode: Callable[[Tensor], NDArray[np.float32]], *, frames: int, fps: float, capacity: int) -> None:
        self._encode, self._frames, self._period_ns = encode, frames, round(1e9 / fps)
        self._window: deque[tuple[int, Tensor]] = deque(maxlen=frames)
        self._new = 0  # frames of the window that are in no clip yet
        self._clips: deque[Remembered] = deque(maxlen=capacity)

    def __len__(self) -> int:
        return len(self._clips)

    def window(self) -> list[Tensor]:
        """Tokens of the newest frames, at most one fewer than a clip has."""
        return [tokens for _, tokens in self._window][-(self._frames - 1) :] if self._frames > 1 else []

    def add(self, stamp_ns: int, tokens: Tensor) -> None:
        """Takes a frame (1 + P, w), if it is late enough after the last one taken. A stamp that went back begins a new recording."""
        if self._window:
            since = stamp_ns - self._window[-1][0]
            if since < 0:
                self._close()
            elif since < 0.9 * self._period_ns:  # cameras are not quite even
                return
        self._window.append((stamp_ns, tokens))
        self._new += 1
        if len(self._window) == self._frames and self._new >= max(self._frames // 2, 1):
            self._clips.append(self._present())
            self._new = 0

    def find(self, query: NDArray[np.float32], top: int) -> list[tuple[Remembered, float]]:
        """The clips most similar to a unit vector (d,), best first; frames that fill no clip yet count as one."""
        clips = [*self._clips, *([self._present()] if self._new else [])]
        if not clips:
            return []
        return [(clips[row], score) for row, score in best(np.stack([clip.vector for clip in clips]), query, top)]

    def clear(self) -> None:
        """Forgets everything."""
        self._window.clear()
        self._clips.clear()
        self._new = 0

    def _close(self) -> None:
        """What was seen last becomes a clip, though it is a short one."""
        if self._new:
            self._clips.append(self._present())
        self._window.clear()
        self._new = 0

    def _present(self) -> Remembered:
        vector = self._encode(torch.stack([tokens for _, tokens in self._window]))
        return Remembered(start_ns=self._window[0][0], end_ns=self._window[-1][0], vector=vector)
