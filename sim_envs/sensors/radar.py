"""Echoes of a stepped-frequency or FMCW MIMO radar from scatterers with normals.

    S(f, tx, rx) = sum_k a_k / (R1 R2) exp(-j 2 pi f (R1 + R2) / c),   a_k = strength_k max(0, n.v1) max(0, n.v2)

R1, R2: from scatterer k to the transmitter and the receiver; v1, v2: the directions there. With both antennas in one place a_k is
strength (n.v)^2, a specular reflector. Bodies do not hide what is behind them; a scatterer that faces away is not seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SPEED_OF_LIGHT = 299_792_458.0
_FRAMES_AT_ONCE = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class RadarArray:
    """Antennas and frequencies.

    Attributes:
        transmitters: (tx, 3) phase centres, metres.
        receivers: (rx, 3).
        frequencies: (F,) Hz, in equal steps.
    """

    transmitters: NDArray[np.float64]
    receivers: NDArray[np.float64]
    frequencies: NDArray[np.float64]

    @property
    def bin_m(self) -> float:
        """Bistatic path R1 + R2 of one range bin, c / (F step); F of them repeat."""
        count = len(self.frequencies)
        return SPEED_OF_LIGHT / (count * float(self.frequencies[1] - self.frequencies[0]))


@dataclass(frozen=True, kw_only=True)
class Wall:
    """A wall across the x axis, between the radar and everything it looks at.

    Attributes:
        attenuation: k of the amplitude exp(-k f) of one passage, f in GHz.
        thickness_m: of the wall.
        permittivity: relative; the passage is longer by (sqrt(permittivity) - 1) thickness / cos(angle).
    """

    attenuation: float = 0.5
    thickness_m: float = 0.15
    permittivity: float = 4.0

    def passage(self, directions: NDArray[np.float64], frequencies: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Longer path (...,) in metres along unit vectors (..., 3), and amplitudes (F,)."""
        slant = np.maximum(np.abs(directions[..., 0]), 0.2)  # at grazing angles most is reflected
        longer = (math.sqrt(self.permittivity) - 1.0) * self.thickness_m / slant
        return longer, np.exp(-self.attenuation * frequencies / 1e9)


@dataclass(frozen=True, kw_only=True)
class Chirp:
    """An FMCW sweep over the array's frequencies.

    Attributes:
        duration_s: of one sweep.
        oversampling: samples of the beat signal for each frequency of the array.
    """

    duration_s: float = 1e-4
    oversampling: int = 4


def echoes(
    array: RadarArray,
    points: NDArray[np.float64],
    normals: NDArray[np.float64],
    strength: NDArray[np.complex64],
    *,
    wall: Wall | None = None,
    chirp: Chirp | None = None,
) -> NDArray[np.complex64]:
    """S(f) of T frames, (T, tx, rx, F).

    Args:
        array: antennas and frequencies.
        points: (T, K, 3) scatterers, metres.
        normals: (T, K, 3) of length 1.
        strength: (T, K): area times fading; 0 for a scatterer that drops out.
        wall: that everything is behind; None in free space.
        chirp: of an FMCW radar, whose beat signal is brought to the same form; None for stepped frequencies.
    """
    pieces = [slice(start, start + _FRAMES_AT_ONCE) for start in range(0, len(points), _FRAMES_AT_ONCE)]
    found = [_piece(array, points[piece], normals[piece], strength[piece], wall, chirp) for piece in pieces]
    return (
        np.concatenate(found)
        if found
        else np.zeros((0, len(array.transmitters), len(array.receivers), len(array.frequencies)), np.complex64)
    )


def _piece(
    array: RadarArray,
    points: NDArray[np.float64],
    normals: NDArray[np.float64],
    strength: NDArray[np.complex64],
    wall: Wall | None,
    chirp: Chirp | None,
) -> NDArray[np.complex64]:
    grid = array.frequencies if chirp is None else _fine_grid(array.frequencies, chirp)
    there, there_path = _paths(array.transmitters, points, normals, grid, wall)  # (F, T, tx, K), (T, tx, K)
    back, back_path = _paths(array.receivers, points, normals, grid, wall)
    if chirp is None:
        return np.moveaxis((there * strength[:, None]) @ back.swapaxes(-1, -2), 0, -1)
    # Mixed with what is sent, a delay tau leaves its phase 2 pi f tau less pi slope tau^2, the residual video phase.
    slope = _slope(grid, chirp)
    delay = (there_path[:, :, None] + back_path[:, None]) / SPEED_OF_LIGHT  # (T, tx, rx, K)
    residual = np.exp(1j * math.pi * slope * delay**2).astype(np.complex64) * strength[:, None, None]
    beat = np.einsum("ftak,ftbk,tabk->tabf", there, back, residual, optimize=True)
    return stepped_form(beat, slope, float(grid[1] - grid[0]))[..., :: chirp.oversampling].astype(np.complex64)


def _fine_grid(frequencies: NDArray[np.float64], chirp: Chirp) -> NDArray[np.float64]:
    step = (frequencies[1] - frequencies[0]) / chirp.oversampling
    return frequencies[0] + step * np.arange(len(frequencies) * chirp.oversampling)


def _slope(grid: NDArray[np.float64], chirp: Chirp) -> float:
    """Hz per second of the sweep; the sample after the last would be at its end."""
    return float(grid[1] - grid[0]) * len(grid) / chirp.duration_s


def stepped_form(beat: NDArray[np.complex64], slope: float, step: float) -> NDArray[np.complex128]:
    """S(f) of a beat signal: FFT to the range profile, each bin's residual video phase pi slope tau^2 taken away, and back.

    Args:
        beat: (..., M) samples of one sweep, sample m while frequency f0 + m step is sent.
        slope: of the sweep, Hz/s.
        step: Hz. Delays up to 1 / (2 step) are told apart.
    """
    delay = np.fft.fftfreq(beat.shape[-1], step)
    # A delay tau turns by exp(-j 2 pi step tau) from sample to sample; the inverse transform has it at bin tau.
    profile = np.fft.ifft(beat, axis=-1) * np.exp(-1j * math.pi * slope * delay**2)
    return np.fft.fft(profile, axis=-1)


def _paths(
    antennas: NDArray[np.float64],
    points: NDArray[np.float64],
    normals: NDArray[np.float64],
    grid: NDArray[np.float64],
    wall: Wall | None,
) -> tuple[NDArray[np.complex64], NDArray[np.float64]]:
    """One way between antennas and scatterers: amplitude and phase (F, T, antennas, K), and length (T, antennas, K)."""
    away = antennas[None, :, None] - points[:, None]
    length = np.maximum(np.linalg.norm(away, axis=-1), 0.05)
    away /= length[..., None]
    facing = np.maximum(0.0, np.einsum("tkd,takd->tak", normals, away))
    path, passes = length, np.ones(len(grid))
    if wall is not None:
        longer, passes = wall.passage(away, grid)
        path = length + longer
    # The phase turns by the same step from one frequency to the next, so it is multiplied up, not worked out each time.
    turn = np.exp(-2j * math.pi * (grid[1] - grid[0]) / SPEED_OF_LIGHT * path)
    wave = np.exp(-2j * math.pi * grid[0] / SPEED_OF_LIGHT * path) * facing / length
    waves = np.empty((len(grid), *path.shape), np.complex64)
    for index, amplitude in enumerate(passes):
        waves[index] = amplitude * wave
        wave *= turn
    return waves, path
