"""Images from echoes, for the baselines: back-projection onto a grid of points, and range profiles.

I(p) = |sum_{f, tx, rx} S(f, tx, rx) exp(+j 2 pi f (R1(p) + R2(p)) / c)|
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from robot_bridge.auxiliary.monitoring.rfmamba.echoes import Recordings
from robot_bridge.auxiliary.monitoring.rfmamba.interface import RadarGeometry

SPEED_OF_LIGHT = 299_792_458.0
GRID = {"x": (1.0, 3.0, 12), "y": (-1.25, 1.25, 14), "z": (-0.7, 1.1, 8)}
"""Where people are: from, to, points; metres in the arm's base frame."""
SHAPE = tuple(points for _, _, points in GRID.values())


def steering(geometry: RadarGeometry) -> Tensor:
    """(tx rx F, X Y Z) complex64 that takes an echo to an image."""
    axes = [np.linspace(low, high, points) for low, high, points in GRID.values()]
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    there, back = (
        np.linalg.norm(np.array(antennas)[:, None] - places, axis=-1) for antennas in (geometry.transmitters, geometry.receivers)
    )
    path = there[:, None, None] + back[None, :, None]
    phase = 2 * np.pi / SPEED_OF_LIGHT * np.array(geometry.frequencies)[None, None, :, None] * path
    return torch.from_numpy(np.exp(1j * phase).astype(np.complex64)).flatten(0, 2)


def window_images(data: Recordings, frames: int) -> Tensor:
    """Images (n, frames, X Y Z) of all windows in the order of `Recordings.windows`; each frame's has length 1."""
    return _of_windows(_back_projected(data), frames)


def window_profiles(data: Recordings, frames: int) -> Tensor:
    """Amplitudes of the range profiles (n, frames, tx rx F) of all windows; each frame's has length 1."""
    return _of_windows(torch.fft.ifft(_moving(data), dim=-1).abs().flatten(2), frames)


def _back_projected(data: Recordings) -> Tensor:
    matrix = steering(data.geometry)
    return torch.stack([(recording.flatten(1) @ matrix).abs() for recording in _moving(data)])


def _moving(data: Recordings) -> Tensor:
    echoes: NDArray[np.complex64] = data.echoes - data.backgrounds[:, None]
    return torch.from_numpy(echoes)


def _of_windows(features: Tensor, frames: int) -> Tensor:
    """(R, T, V) -> (R (T - frames + 1), frames, V)."""
    long = torch.nn.functional.normalize(features, dim=-1)
    return long.unfold(1, frames, 1).movedim(-1, 2).flatten(0, 1)
