"""Windows: a film cut into clips of a fixed number of frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_bridge.auxiliary.video.film import Film


@dataclass(frozen=True, kw_only=True)
class Window:
    """Rows of a film that make a clip."""

    rows: tuple[int, ...]


def windows(stamps_ns: NDArray[np.int64], *, frames: int, fps: float) -> list[Window]:
    """Clips of a film: `frames` frames at `fps` frames a second, each half over the one before.

    A film shorter than one clip becomes one clip, evenly over its time. A film with fewer frames than that becomes a shorter clip.

    Args:
        stamps_ns: (T,) of the film's frames, rising.
        frames: of a clip.
        fps: frames a second.
    """
    length_ns, period_ns = int(stamps_ns[-1] - stamps_ns[0]), round(1e9 / fps)
    if length_ns < frames * period_ns:
        wanted = stamps_ns[0] + (np.arange(frames) + 0.5) / frames * length_ns
        return [Window(rows=_nearest(stamps_ns, wanted))]
    ticks = np.arange(stamps_ns[0], stamps_ns[-1] + 1, period_ns)
    starts = list(range(0, len(ticks) - frames + 1, max(frames // 2, 1)))
    if starts[-1] + frames < len(ticks):
        starts.append(len(ticks) - frames)  # the end of the film too
    return [Window(rows=_nearest(stamps_ns, ticks[start : start + frames])) for start in starts]


def clip_of(film: Film, window: Window) -> NDArray[np.uint8]:
    """Frames (F, H, W, 3) of a window."""
    return np.stack([film.frames[row] for row in window.rows])


def _nearest(stamps_ns: NDArray[np.int64], wanted: NDArray[np.int64] | NDArray[np.float64]) -> tuple[int, ...]:
    """Different rows nearest to those times, rising."""
    middles = (stamps_ns[1:] + stamps_ns[:-1]) / 2
    return tuple(sorted(set(np.searchsorted(middles, wanted).tolist())))
