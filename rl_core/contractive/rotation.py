"""Orientations as rotation vectors relative to the goal's, for arrays of any leading shape. Quaternions are x, y, z, w; |vector| <= pi."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def to_vector(quaternion: NDArray[Any]) -> Array:
    """Rotation vectors (..., 3), rad, of the shorter way round."""
    quaternion = np.asarray(quaternion, np.float64)
    quaternion = quaternion * np.where(quaternion[..., 3:] < 0, -1.0, 1.0)
    sine = np.linalg.norm(quaternion[..., :3], axis=-1, keepdims=True)
    ratio = np.divide(2.0 * np.arctan2(sine, quaternion[..., 3:]), sine, out=np.full_like(sine, 2.0), where=sine > 1e-12)
    return quaternion[..., :3] * ratio


def from_vector(vector: Array) -> Array:
    """Quaternions (..., 4) of rotation vectors (..., 3)."""
    angle = np.linalg.norm(vector, axis=-1, keepdims=True)
    ratio = np.divide(np.sin(0.5 * angle), angle, out=np.full_like(angle, 0.5), where=angle > 1e-12)
    return np.concatenate([vector * ratio, np.cos(0.5 * angle)], axis=-1)


def multiply(a: NDArray[Any], b: NDArray[Any]) -> Array:
    """`a` after `b`."""
    av, aw, bv, bw = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    vector = aw * bv + bw * av + np.cross(av, bv)
    return np.concatenate([vector, aw * bw - (av * bv).sum(-1, keepdims=True)], axis=-1)


def inverse(quaternion: NDArray[Any]) -> Array:
    """The rotation back."""
    return np.asarray(quaternion, np.float64) * np.array([-1.0, -1.0, -1.0, 1.0])
