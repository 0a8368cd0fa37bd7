"""Recordings of a person by a simulated radar: echoes, where the joints were, what the person did, which range bins they filled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sim_envs.sensors.clutter import cell_scatterers
from sim_envs.sensors.humanoid import Build, Humanoid
from sim_envs.sensors.motions import Area, Motion, motion
from sim_envs.sensors.radar import Chirp, RadarArray, Wall, echoes
from sim_envs.sensors.surfaces import sample_surface

Waveform = Literal["sfcw", "fmcw"]
_BODY_POINTS, _CELL_POINTS = 200, 150
_REFERENCE_M = 2.0
_EMPTY_FRAMES = 64
_FADING, _FADING_MEMORY_S = 0.3, 0.5
"""Share of the power that changes, and for how long it stays alike."""


@dataclass(frozen=True, kw_only=True)
class RadarScene:
    """What all recordings have in common.

    Attributes:
        frequencies: how many, from `low_hz` to `high_hz`.
        period_s: from one frame to the next.
        waveform: stepped frequencies, or a sweep.
        snr_db: power of the echo of a mean person at 2 m in free space over that of the noise, a sample.
        dropout: share of scatterers that are not seen, drawn anew each frame.
        area: where people are.
    """

    frequencies: int = 32
    low_hz: float = 0.8e9
    high_hz: float = 2.8e9
    period_s: float = 0.1
    waveform: Waveform = "sfcw"
    snr_db: float = 20.0
    dropout: float = 0.4
    area: Area = Area()

    @property
    def array(self) -> RadarArray:
        """Four transmitters on a level bar and four receivers on an upright one, behind the arm."""
        return RadarArray(
            transmitters=np.array([[0.0, y, 0.6] for y in (-0.6, -0.2, 0.2, 0.6)]),
            receivers=np.array([[0.0, 0.0, z] for z in (-0.4, 0.0, 0.4, 0.8)]),
            frequencies=np.linspace(self.low_hz, self.high_hz, self.frequencies),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """T frames of one person.

    Attributes:
        echoes: (T, tx, rx, F) complex64, clutter and noise included.
        background: (tx, rx, F), mean echo of the cell with nobody in it, measured before.
        joints: (T, 14, 3) metres in the arm's base frame.
        activity: (T,) index in `motions.ACTIVITIES`.
        body: (T, tx, rx, F): whether a part of the person lies in a range bin of an antenna pair, modulo F bins.
    """

    echoes: NDArray[np.complex64]
    background: NDArray[np.complex64]
    joints: NDArray[np.float32]
    activity: NDArray[np.int64]
    body: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Observed:
    """T frames as the radar hears them, and what it heard.

    Attributes:
        echoes: (T, tx, rx, F) complex64, clutter and noise included.
        background: (tx, rx, F) complex64, mean echo of the cell with nobody in it, measured before.
        joints: (T, 14, 3) metres.
        points, normals: (T, K, 3) of the body's scatterers, metres.
    """

    echoes: NDArray[np.complex64]
    background: NDArray[np.complex64]
    joints: NDArray[np.float64]
    points: NDArray[np.float64]
    normals: NDArray[np.float64]


class Recorder:
    """Records people in one cell.

    Args:
        scene: what all recordings have in common.
        rng: of the cell's scatterers.
    """

    def __init__(self, scene: RadarScene, rng: np.random.Generator) -> None:
        self.scene, self.array = scene, scene.array
        self._chirp = Chirp() if scene.waveform == "fmcw" else None
        points, normals, areas = cell_scatterers(_CELL_POINTS, rng)
        strength = (areas * _complex_normal(rng, areas.shape)).astype(np.complex64)
        self._clutter = echoes(self.array, points[None], normals[None], strength[None], chirp=self._chirp)[0]
        self._noise = 10 ** (-scene.snr_db / 20) * self._reference(rng)

    def record(self, build: Build, activity: str, frames: int, rng: np.random.Generator, *, wall: Wall | None = None) -> Recording:
        """One person for `frames` frames.

        Args:
            build: of the person.
            activity: one of `motions.ACTIVITIES`.
            frames: T.
            rng: of place, motion, fading and noise.
            wall: between the cell and the person; None in free space.

        Raises:
            ValueError: an activity that there is none of, or a walk that does not fit into the area.
        """
        person, times = Humanoid(build), self.scene.period_s * np.arange(frames)
        moved = motion(activity, times, build, self.scene.area, rng)
        heard = self.observe(person, moved, rng, wall=wall)
        return Recording(
            echoes=heard.echoes,
            background=heard.background,
            joints=heard.joints.astype(np.float32),
            activity=moved.activity,
            body=self._filled(heard.points, heard.normals),
        )

    def observe(self, person: Humanoid, moved: Motion, rng: np.random.Generator, *, wall: Wall | None = None) -> Observed:
        """What the radar hears of a person.

        Args:
            person: their body.
            moved: what they do in T frames, a frame every `scene.period_s`.
            rng: of fading and noise.
            wall: between the cell and the person; None in free space.
        """
        joints, places, turns = person.poses(moved.position, moved.quaternion, moved.angles)
        surface = sample_surface(person.model, _BODY_POINTS, rng)
        points, normals = surface.placed(places, turns)
        strength = surface.areas * self._fading(points.shape[:2], rng)
        body = echoes(self.array, points, normals, strength.astype(np.complex64), wall=wall, chirp=self._chirp)
        empty = self._clutter + self._noise * _complex_normal(rng, self._clutter.shape) / np.sqrt(_EMPTY_FRAMES)
        heard = body + self._clutter + self._noise * _complex_normal(rng, body.shape)
        return Observed(
            echoes=heard.astype(np.complex64), background=empty.astype(np.complex64), joints=joints, points=points, normals=normals
        )

    def _reference(self, rng: np.random.Generator) -> float:
        """Amplitude of the echo of a mean person who stands 2 m away, facing any way."""
        person = Humanoid()
        headings = np.linspace(-np.pi, np.pi, 16, endpoint=False)
        turned = np.stack([np.cos(headings / 2), 0 * headings, 0 * headings, np.sin(headings / 2)], axis=1)
        _, places, turns = person.poses(np.tile([_REFERENCE_M, 0.0, 0.2], (16, 1)), turned, {})
        surface = sample_surface(person.model, _BODY_POINTS, rng)
        points, normals = surface.placed(places, turns)
        strength = surface.areas * self._fading(points.shape[:2], rng)
        body = echoes(self.array, points, normals, strength.astype(np.complex64), chirp=self._chirp)
        return float(np.sqrt((np.abs(body) ** 2).mean()))

    def _fading(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.complex128]:
        """(T, K): a fixed part and one that changes slowly; some scatterers drop out."""
        kept = np.exp(-self.scene.period_s / _FADING_MEMORY_S)
        change = _complex_normal(rng, shape)
        for frame in range(1, shape[0]):
            change[frame] = kept * change[frame - 1] + np.sqrt(1 - kept**2) * change[frame]
        return (np.sqrt(1 - _FADING) + np.sqrt(_FADING) * change) * (rng.random(shape) >= self.scene.dropout)

    def _filled(self, points: NDArray[np.float64], normals: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(T, tx, rx, F): bins with a point that faces both antennas."""
        count = len(self.array.frequencies)
        away = [places[None, :, None] - points[:, None] for places in (self.array.transmitters, self.array.receivers)]
        length = [np.linalg.norm(each, axis=-1) for each in away]  # (T, antennas, K)
        faced = [np.einsum("tkd,takd->tak", normals, each) > 0 for each in away]
        bins = np.rint((length[0][:, :, None] + length[1][:, None]) / self.array.bin_m).astype(np.int64) % count
        seen = faced[0][:, :, None] & faced[1][:, None]
        body = np.zeros((*bins.shape[:3], count), bool)
        where = np.nonzero(seen)
        body[where[0], where[1], where[2], bins[where]] = True
        return body


def _complex_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.complex128]:
    """Of mean power 1."""
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)) / np.sqrt(2.0)
