"""What a simulated radar hears of a scripted visit: the echoes of a `Walker`, in the cell that recordings for training are made in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim_envs.sensors.radar import Wall
from sim_envs.sensors.recordings import Recorder
from sim_envs.sensors.walker import Walker


@dataclass(frozen=True, kw_only=True, eq=False)
class Visit:
    """T frames, from second 0 on.

    Attributes:
        echoes: (T, tx, rx, F) complex64, clutter and noise included.
        background: (tx, rx, F) complex64, mean echo of the cell with nobody in it.
        period_s: from one frame to the next.
    """

    echoes: NDArray[np.complex64]
    background: NDArray[np.complex64]
    period_s: float

    def window(self, seconds: float, frames: int, *, repeat: bool = False) -> NDArray[np.complex64]:
        """(frames, tx, rx, F): the newest frames at `seconds`, oldest first; before the first and after the last frame these stay, or,
        with `repeat`, the visit begins anew."""
        newest = int(seconds / self.period_s + 1e-6)
        index = np.arange(newest - frames + 1, newest + 1)
        count = len(self.echoes)
        return self.echoes[index % count if repeat else np.clip(index, 0, count - 1)]


def record_visit(recorder: Recorder, walker: Walker, rng: np.random.Generator, *, wall: Wall | None = None) -> Visit:
    """A walk from its begin to its end.

    Args:
        recorder: of the cell.
        walker: the person.
        rng: of fading and noise.
        wall: between the cell and the person; None in free space.
    """
    period_s = recorder.scene.period_s
    times = period_s * np.arange(round(walker.duration_s / period_s))
    heard = recorder.observe(walker.humanoid, walker.motion(times), rng, wall=wall)
    return Visit(echoes=heard.echoes, background=heard.background, period_s=period_s)
