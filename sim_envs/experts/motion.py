"""From a wanted hand pose to an `ee_delta` action. Quaternions are x, y, z, w; the frame is the robot's base."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

POSITION_STEP = 0.05
ROTATION_STEP = 0.5
"""Metres and rad of an action of 1: the scale of the contract's `ee_delta`."""

OPEN, CLOSE = -1.0, 1.0


def towards(obs: Mapping[str, np.ndarray], position: np.ndarray, yaw: float, gripper: float, speed: float) -> np.ndarray:
    """The action (7,) that moves the hand, pointing down and turned by `yaw` about the vertical, to `position`.

    Proportional: an action asks for the whole way that is left, at most `speed` of the full scale, along a straight line.

    Args:
        obs: channels `eef_pos`, `eef_quat`.
        position: (3,) metres.
        yaw: rad; 0 has the fingers move along y.
        gripper: `OPEN` .. `CLOSE`.
        speed: largest norm of the displacement's part of the action.
    """
    translation = np.subtract(position, obs["eef_pos"], dtype=np.float64) / POSITION_STEP
    rotation = rotation_between(np.asarray(obs["eef_quat"], dtype=np.float64), pointing_down(yaw)) / ROTATION_STEP
    return np.concatenate([_limited(translation, speed), _limited(rotation, speed), [gripper]])


def pointing_down(yaw: float) -> np.ndarray:
    """Quaternion of a hand that points down: half a turn about x, then `yaw` about z."""
    return np.array([np.cos(yaw / 2), np.sin(yaw / 2), 0.0, 0.0])


def yaw_of(quat: np.ndarray) -> float:
    """Heading of a body's x axis in the horizontal plane, rad."""
    x, y, z, w = np.asarray(quat, dtype=np.float64)
    return float(np.arctan2(2 * (x * y + w * z), 1 - 2 * (y * y + z * z)))


def nearest_turn(yaw: float, period: float) -> float:
    """`yaw` modulo the symmetry `period`, as near to 0 as can be."""
    return (yaw + period / 2) % period - period / 2


def rotation_between(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Rotation vector (3,), rad, base axes, that turns orientation `start` into `end` the shorter way."""
    # end * conjugate(start)
    vector = -end[3] * start[:3] + start[3] * end[:3] - np.cross(end[:3], start[:3])
    scalar = end @ start
    if scalar < 0:
        vector, scalar = -vector, -scalar
    norm = float(np.linalg.norm(vector))
    return vector * (2 * np.arctan2(norm, scalar) / norm) if norm > 1e-9 else np.zeros(3)


def _limited(vector: np.ndarray, largest: float) -> np.ndarray:
    norm = float(np.linalg.norm(vector))
    return vector if norm <= largest else vector * (largest / norm)
