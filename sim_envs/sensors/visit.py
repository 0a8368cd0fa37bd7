"""What a simulated radar hears of a scripted visit: the echoes of a `Walker`, in the cell that recordings for training are made in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim_envs.sensors.radar import Wall, echoes
from sim_envs.sensors.recordings import Recorder
from sim_envs.sensors.surfaces import sample_surface
from sim_envs.sensors.walker import Walker

_BODY_POINTS, _EMPTY_FRAMES = 200, 64


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


class VisitRecorder(Recorder):
    """Records walkers; see `Recorder`."""

    def visit(self, walker: Walker, rng: np.random.Generator, *, wall: Wall | None = None) -> Visit:
        """A walk from its begin to its end.

        Args:
            walker: the person.
            rng: of fading and noise.
            wall: between the cell and the person; None in free space.
        """
        times = self.scene.period_s * np.arange(round(walker.duration_s / self.scene.period_s))
        moved = walker.motion(times)
        _, places, turns = walker.humanoid.poses(moved.position, moved.quaternion, moved.angles)
        surface = sample_surface(walker.humanoid.model, _BODY_POINTS, rng)
        points, normals = surface.placed(places, turns)
        strength = surface.areas * self._fading((points.shape[0], points.shape[1]), rng)
        body = echoes(self.array, points, normals, strength.astype(np.complex64), wall=wall, chirp=self._chirp)
        heard = body + self._clutter + self._noise * _complex_normal(rng, body.shape)
        empty = self._clutter + self._noise * _complex_normal(rng, self._clutter.shape) / np.sqrt(_EMPTY_FRAMES)
        return Visit(echoes=heard.astype(np.complex64), background=empty.astype(np.complex64), period_s=self.scene.period_s)


def _complex_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.complex128]:
    """Of mean power 1."""
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)) / np.sqrt(2.0)
