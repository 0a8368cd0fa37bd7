"""Points on the surface of MuJoCo geoms, with normals and the area each stands for: what a radar sees of a body."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Surface:
    """K points on the geoms of a model, in the frames of their geoms.

    Attributes:
        geoms: (K,) which geom a point is on.
        points: (K, 3) metres.
        normals: (K, 3) outward, length 1.
        areas: (K,) square metres.
    """

    geoms: NDArray[np.int64]
    points: Array
    normals: Array
    areas: Array

    def placed(self, places: Array, turns: Array) -> tuple[Array, Array]:
        """Points and normals (T, K, 3) where the geoms stand at `places` (T, G, 3), turned by `turns` (T, G, 3, 3)."""
        turn = turns[:, self.geoms]
        points = np.matmul(turn, self.points[..., None])[..., 0] + places[:, self.geoms]
        return points, np.matmul(turn, self.normals[..., None])[..., 0]


def sample_surface(model: mujoco.MjModel, count: int, rng: np.random.Generator) -> Surface:
    """About `count` points, shared out by area; every geom has one or more.

    Raises:
        ValueError: a geom that is no sphere, capsule or box.
    """
    makers = {mujoco.mjtGeom.mjGEOM_SPHERE: _sphere, mujoco.mjtGeom.mjGEOM_CAPSULE: _capsule, mujoco.mjtGeom.mjGEOM_BOX: _box}
    kinds = [mujoco.mjtGeom(kind) for kind in model.geom_type]
    if other := sorted({kind.name for kind in kinds} - {kind.name for kind in makers}):
        raise ValueError(f"geoms of type {', '.join(other)}, valid: {', '.join(kind.name for kind in makers)}")
    areas = [_area(kind, size) for kind, size in zip(kinds, model.geom_size, strict=True)]
    counts = [max(1, round(count * area / sum(areas))) for area in areas]
    found = [makers[kind](size, n, rng) for kind, size, n in zip(kinds, model.geom_size, counts, strict=True)]
    return Surface(
        geoms=np.repeat(np.arange(len(kinds)), counts),
        points=np.concatenate([points for points, _ in found]),
        normals=np.concatenate([normals for _, normals in found]),
        areas=np.repeat(np.array(areas) / counts, counts),
    )


def _area(kind: mujoco.mjtGeom, size: Array) -> float:
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return 8.0 * float(size[0] * size[1] + size[1] * size[2] + size[2] * size[0])
    length = 2.0 * size[1] if kind == mujoco.mjtGeom.mjGEOM_CAPSULE else 0.0
    return float(2.0 * math.pi * size[0] * (2.0 * size[0] + length))


def _sphere(size: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    normals = rng.normal(size=(count, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return size[0] * normals, normals


def _capsule(size: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    radius, half = size[0], size[1]
    points, normals = _sphere(size, count, rng)  # the two caps are a sphere
    on_side = rng.random(count) < 2.0 * half / (2.0 * half + 2.0 * radius)
    points[:, 2] += np.where(points[:, 2] >= 0, half, -half)
    angle, height = rng.uniform(0, 2 * math.pi, count), rng.uniform(-half, half, count)
    around = np.stack([np.cos(angle), np.sin(angle), np.zeros(count)], axis=1)
    side = radius * around
    side[:, 2] = height
    return np.where(on_side[:, None], side, points), np.where(on_side[:, None], around, normals)


def _box(size: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    faces = np.array([size[1] * size[2], size[2] * size[0], size[0] * size[1]])
    axis, sign = rng.choice(3, count, p=faces / faces.sum()), rng.choice([-1.0, 1.0], count)
    normals = np.zeros((count, 3))
    normals[np.arange(count), axis] = sign
    points = rng.uniform(-1, 1, (count, 3))
    points[np.arange(count), axis] = sign
    return points * size, normals
