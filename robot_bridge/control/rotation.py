"""Rotations as unit quaternions x, y, z, w."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def from_rotation_vector(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """The turn by |vector| rad about `vector` (3,)."""
    angle = float(np.linalg.norm(vector))
    share = math.sin(angle / 2) / angle if angle > 1e-12 else 0.5
    return np.array([vector[0] * share, vector[1] * share, vector[2] * share, math.cos(angle / 2)])


def to_rotation_vector(quaternion: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rotation vector (3,), rad, of the shorter way round; inverse of `from_rotation_vector` below pi."""
    vector, scalar = quaternion[:3], float(quaternion[3])
    if scalar < 0:
        vector, scalar = -vector, -scalar
    sine = float(np.linalg.norm(vector))
    return vector * (2 * math.atan2(sine, scalar) / sine if sine > 1e-12 else 2.0)


def multiply(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """`a` after `b`: the rotation that turns by `b` first."""
    ax, ay, az, aw = a.tolist()
    bx, by, bz, bw = b.tolist()
    return np.array(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ]
    )


def inverse(quaternion: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rotation back."""
    return quaternion * np.array([-1.0, -1.0, -1.0, 1.0])


def angle_between(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Angle of the turn from `a` to `b`, 0..pi."""
    return float(np.linalg.norm(to_rotation_vector(multiply(b, inverse(a)))))
