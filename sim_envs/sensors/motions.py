"""Scripted motions of a person: where the pelvis is and how the joints are bent, at given times."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim_envs.sensors.humanoid import PELVIS_M, Build

Array = NDArray[np.float64]
ACTIVITIES = ("walking", "standing", "waving", "falling")
_SPEED_MPS = 0.8, 1.4
_LYING_M = 0.15


@dataclass(frozen=True, kw_only=True)
class Area:
    """Where a person may be: corners of the floor (x, y) and its height, metres in the arm's base frame."""

    low: tuple[float, float] = (1.2, -1.0)
    high: tuple[float, float] = (2.8, 1.0)
    floor_m: float = -0.7


@dataclass(frozen=True, kw_only=True, eq=False)
class Motion:
    """A person at T times.

    Attributes:
        position: (T, 3) of the pelvis, metres.
        quaternion: (T, 4), w first.
        angles: joint -> (T,) radians.
        activity: (T,) index in `ACTIVITIES`; who falls stands before.
    """

    position: Array
    quaternion: Array
    angles: Mapping[str, Array]
    activity: NDArray[np.int64]


def motion(activity: str, times: Array, build: Build, area: Area, rng: np.random.Generator) -> Motion:
    """A motion of a kind, with random place, direction, speed and habit.

    Args:
        activity: one of `ACTIVITIES`.
        times: (T,) seconds from 0.
        build: of the person.
        area: where they may be.
        rng: of everything that differs from one recording to the next.

    Raises:
        ValueError: another activity.
    """
    if activity not in _SCRIPTS:
        raise ValueError(f"activity {activity!r}, valid: {', '.join(ACTIVITIES)}")
    return _SCRIPTS[activity](times, build, area, rng)


def _walking(times: Array, build: Build, area: Area, rng: np.random.Generator) -> Motion:
    speed = rng.uniform(*_SPEED_MPS)
    start, heading = _path(speed * times[-1], area, rng)
    phase = 2 * math.pi * (0.55 + 0.4 * speed) * times + rng.uniform(0, 2 * math.pi)  # about a step every 0.5 s
    reach, bend = rng.uniform(0.35, 0.6), rng.uniform(0.5, 0.9)
    angles = {"lean": np.full_like(times, rng.uniform(0.0, 0.12))}
    for side, swing in (("left", np.sin(phase)), ("right", -np.sin(phase))):
        forward = np.cos(phase) if side == "left" else -np.cos(phase)
        angles[f"{side}_hip_pitch"] = reach * swing
        angles[f"{side}_knee"] = bend * np.maximum(0.0, forward) + 0.08
        angles[f"{side}_shoulder_pitch"] = -0.8 * reach * swing
        angles[f"{side}_shoulder_roll"] = np.full_like(times, 0.1)
        angles[f"{side}_elbow"] = np.full_like(times, 0.4)
    position = np.zeros((len(times), 3))
    position[:, :2] = start + speed * times[:, None] * np.array([math.cos(heading), math.sin(heading)])
    position[:, 2] = area.floor_m + PELVIS_M * build.height - 0.02 * (1 + np.cos(2 * phase))
    return _upright(times, position, heading, angles, "walking")


def _standing(times: Array, build: Build, area: Area, rng: np.random.Generator) -> Motion:
    angles = {"lean": rng.normal(0.03, 0.03) + 0.01 * np.sin(2 * math.pi * rng.uniform(0.2, 0.5) * times)}
    for side in ("left", "right"):
        angles[f"{side}_shoulder_roll"] = np.full_like(times, abs(rng.normal(0.1, 0.08)))
        angles[f"{side}_shoulder_pitch"] = np.full_like(times, rng.normal(0.0, 0.15))
        angles[f"{side}_elbow"] = np.full_like(times, rng.uniform(0.1, 0.9))
        angles[f"{side}_hip_roll"] = np.full_like(times, abs(rng.normal(0.03, 0.03)))
    sway = 0.015 * np.sin(2 * math.pi * rng.uniform(0.2, 0.5) * times + rng.uniform(0, 2 * math.pi))
    position = np.zeros((len(times), 3))
    position[:, :2] = rng.uniform(area.low, area.high) + sway[:, None] * rng.normal(size=2)
    position[:, 2] = area.floor_m + PELVIS_M * build.height
    return _upright(times, position, rng.uniform(-math.pi, math.pi), angles, "standing")


def _waving(times: Array, build: Build, area: Area, rng: np.random.Generator) -> Motion:
    still = _standing(times, build, area, rng)
    side, both = rng.choice(["left", "right"]), rng.random() < 0.25
    swing = np.sin(2 * math.pi * rng.uniform(1.0, 2.0) * times + rng.uniform(0, 2 * math.pi))
    angles = dict(still.angles)
    for arm in ("left", "right") if both else (side,):
        angles[f"{arm}_shoulder_roll"] = rng.uniform(1.6, 2.6) + 0.25 * swing
        angles[f"{arm}_shoulder_pitch"] = np.full_like(times, rng.normal(0.2, 0.2))
        angles[f"{arm}_elbow"] = 0.7 + 0.6 * swing
    return Motion(
        position=still.position, quaternion=still.quaternion, angles=angles, activity=np.full(len(times), ACTIVITIES.index("waving"))
    )


def _falling(times: Array, build: Build, area: Area, rng: np.random.Generator) -> Motion:
    still = _standing(times, build, area, rng)
    onset, duration = rng.uniform(-0.5, 0.6) * times[-1], rng.uniform(0.5, 0.9)
    share = np.clip((times - onset) / duration, 0.0, 1.0)
    gone = share**2 * (3 - 2 * share)
    # Turned about a level axis through the feet; the pelvis follows a quarter circle that ends on the floor.
    toward = rng.uniform(-math.pi, math.pi)
    tilt = 0.5 * math.pi * gone
    axis = np.array([-math.sin(toward), math.cos(toward), 0.0])
    turned = np.concatenate([np.cos(tilt / 2)[:, None], np.sin(tilt / 2)[:, None] * axis], axis=1)
    height = PELVIS_M * build.height
    position = still.position.copy()
    position[:, :2] += 0.5 * height * np.sin(tilt)[:, None] * np.array([math.cos(toward), math.sin(toward)])
    position[:, 2] = area.floor_m + _LYING_M + (height - _LYING_M) * np.cos(tilt)
    angles = dict(still.angles)
    for side in ("left", "right"):
        angles[f"{side}_shoulder_pitch"] = angles[f"{side}_shoulder_pitch"] + rng.uniform(0.3, 1.8) * gone
        angles[f"{side}_knee"] = rng.uniform(0.0, 1.0) * gone
    activity = np.where(share > 0, ACTIVITIES.index("falling"), ACTIVITIES.index("standing"))
    return Motion(position=position, quaternion=_product(turned, still.quaternion), angles=angles, activity=activity)


def _path(length: float, area: Area, rng: np.random.Generator) -> tuple[Array, float]:
    """Start and direction of a straight path that stays inside."""
    low, high = np.array(area.low), np.array(area.high)
    heading = 0.0
    for _ in range(1000):
        heading, start = rng.uniform(-math.pi, math.pi), rng.uniform(low, high)
        end = start + length * np.array([math.cos(heading), math.sin(heading)])
        if (end >= low).all() and (end <= high).all():
            return start, heading
    raise ValueError(f"a path of {length:.1f} m, valid: one that fits into the area {area.low} to {area.high} m")


def _upright(times: Array, position: Array, heading: float, angles: Mapping[str, Array], name: str) -> Motion:
    quaternion = np.tile([math.cos(heading / 2), 0.0, 0.0, math.sin(heading / 2)], (len(times), 1))
    return Motion(position=position, quaternion=quaternion, angles=angles, activity=np.full(len(times), ACTIVITIES.index(name)))


def _product(left: Array, right: Array) -> Array:
    """Quaternions (T, 4), w first: first `right`, then `left`."""
    w, v = left[:, :1], left[:, 1:]
    s, u = right[:, :1], right[:, 1:]
    return np.concatenate([w * s - (v * u).sum(1, keepdims=True), w * u + s * v + np.cross(v, u)], axis=1)


_SCRIPTS: Mapping[str, Callable[[Array, Build, Area, np.random.Generator], Motion]] = {
    "walking": _walking,
    "standing": _standing,
    "waving": _waving,
    "falling": _falling,
}
