"""Somebody who walks from place to place at given times, with the body they have there: what a scripted visit to a cell is made of."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from sim_envs.sensors.humanoid import PELVIS_M, Build, Humanoid
from sim_envs.sensors.motions import ACTIVITIES, Motion

Array = NDArray[np.float64]
MEAN = Build()
_STEPS_A_METRE = 1.4
_MOVING_MPS = 0.05


class Walker:
    """Walks straight and evenly from way point to way point, looking where they go, and stands between equal ones.

    Args:
        path: rows (seconds, x, y), metres in the arm's base frame, seconds rising from 0; after the last they stand there.
        build: of the person.
        floor_m: height of the floor in that frame.
        repeat: begin anew instead; the path should end where it began.

    Raises:
        ValueError: fewer than two way points, times that do not rise from 0, or numbers that are not finite.
    """

    def __init__(self, path: Sequence[Sequence[float]], *, build: Build = MEAN, floor_m: float = -0.7, repeat: bool = False) -> None:
        rows = [tuple(map(float, row)) for row in path]
        points = np.array(rows) if {len(row) for row in rows} == {3} else np.empty((0, 3))
        if len(points) < 2 or not np.isfinite(points).all() or points[0, 0] != 0 or (np.diff(points[:, 0]) <= 0).any():
            raise ValueError(f"path {rows}, valid: two or more rows (seconds, x, y), finite, seconds rising from 0")
        self._times, self._places, self._repeat = points[:, 0], points[:, 1:], repeat
        self._floor_m = floor_m
        self._ways = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(self._places, axis=0), axis=1))])
        self.duration_s = float(self._times[-1])
        self.speed_mps = float((np.diff(self._ways) / np.diff(self._times)).max())
        self.humanoid = Humanoid(build)
        model = self.humanoid.model
        self._half = np.where(model.geom_type == mujoco.mjtGeom.mjGEOM_CAPSULE, model.geom_size[:, 1], 0.0)
        self.radii: Array = model.geom_size[:, 0].copy()

    def motion(self, seconds: Sequence[float] | Array) -> Motion:
        """The person at (T,) seconds."""
        times = np.asarray(seconds, dtype=np.float64)
        if self._repeat:
            times = times % self.duration_s
        leg = np.clip(np.searchsorted(self._times, times, side="right") - 1, 0, len(self._times) - 2)
        step = np.diff(self._places, axis=0)
        speed = np.diff(self._ways)[leg] / np.diff(self._times)[leg]
        moving = (times < self.duration_s) & (speed > _MOVING_MPS)
        way = np.interp(times, self._times, self._ways)
        phase = math.pi * _STEPS_A_METRE * way
        stride = np.where(moving, 0.45, 0.0)  # rad
        angles: dict[str, Array] = {}
        for side, sign in (("left", 1.0), ("right", -1.0)):
            angles[f"{side}_hip_pitch"] = sign * stride * np.sin(phase)
            angles[f"{side}_knee"] = 1.5 * stride * np.maximum(0.0, sign * np.cos(phase)) + 0.05
            angles[f"{side}_shoulder_pitch"] = -0.8 * sign * stride * np.sin(phase)
            angles[f"{side}_shoulder_roll"] = np.full_like(times, 0.1)
            angles[f"{side}_elbow"] = np.full_like(times, 0.3)
        position = np.stack([np.interp(times, self._times, self._places[:, axis]) for axis in range(2)], axis=1)
        height = np.full_like(times, self._floor_m + PELVIS_M * self.humanoid.build.height)
        headings = np.array([math.atan2(y, x) for x, y in step])
        heading = self._facing(headings)[leg]
        quaternion = np.stack([np.cos(heading / 2), np.zeros_like(times), np.zeros_like(times), np.sin(heading / 2)], axis=1)
        activity = np.where(moving, ACTIVITIES.index("walking"), ACTIVITIES.index("standing"))
        return Motion(position=np.column_stack([position, height]), quaternion=quaternion, angles=angles, activity=activity)

    def keypoints(self, seconds: Sequence[float] | Array) -> Array:
        """(T, 14, 3) m, in the order of `humanoid.KEYPOINTS`."""
        motion = self.motion(seconds)
        return self.humanoid.poses(motion.position, motion.quaternion, motion.angles)[0]

    def capsules(self, seconds: float) -> Array:
        """(G, 2, 3) m: both ends of the axes of the body's capsules, whose radii are `radii` (G,); a sphere's are equal."""
        motion = self.motion([seconds])
        _, places, turns = self.humanoid.poses(motion.position, motion.quaternion, motion.angles)
        along = turns[0, :, :, 2] * self._half[:, None]
        return np.stack([places[0] - along, places[0] + along], axis=1)

    def _facing(self, headings: Array) -> Array:
        """(legs,) rad; who stands looks where they went."""
        facing = headings.copy()
        for leg, way in enumerate(np.diff(self._ways)):
            if way == 0.0 and leg:
                facing[leg] = facing[leg - 1]
        return facing
