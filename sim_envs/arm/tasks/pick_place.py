"""PickPlace: move several parts from the left bin to the right bin."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from sim_envs.arm.scene import TABLE_CENTRE, TABLE_TOP
from sim_envs.arm.tasks.base import World, add_object, reaching

BIN_HALF = 0.12
"""Half of a bin's inner width and length, metres."""
WALL = 0.005
WALL_HEIGHT = 0.04
SOURCE = (TABLE_CENTRE[0] - 0.06, 0.15)
TARGET = (TABLE_CENTRE[0] - 0.06, -0.15)
"""Middles of the two bins in x and y, metres in the base frame: left is +y."""

PARTS = {
    "block": (mujoco.mjtGeom.mjGEOM_BOX, (0.02, 0.02, 0.02), (0.75, 0.12, 0.1, 1)),
    "can": (mujoco.mjtGeom.mjGEOM_CYLINDER, (0.02, 0.03, 0.0), (0.1, 0.45, 0.8, 1)),
    "bar": (mujoco.mjtGeom.mjGEOM_BOX, (0.035, 0.018, 0.02), (0.9, 0.7, 0.1, 1)),
}
"""Geom, half sizes (metres) and colour of each part; a can's are radius and half height."""


@dataclass(frozen=True, kw_only=True)
class PickPlace:
    """Done when every part lies in the right bin and none is held.

    Attributes:
        spread: parts start within +- spread of the left bin's middle, metres.
        gap: least distance between two parts' middles at the start, metres.
    """

    name: str = "pick_place"
    objects: tuple[str, ...] = tuple(PARTS)
    goals: tuple[str, ...] = ()
    horizon: int = 600
    spread: float = 0.065
    gap: float = 0.085

    def build(self, spec: mujoco.MjSpec) -> None:
        for middle, rgba in ((SOURCE, (0.5, 0.5, 0.55, 1)), (TARGET, (0.3, 0.55, 0.35, 1))):
            add_bin(spec, middle, rgba, BIN_HALF)
        for name, (kind, size, rgba) in PARTS.items():
            add_object(spec, name, kind, size, rgba, density=500.0)

    def reset(self, world: World, rng: np.random.Generator) -> None:
        for name, (x, y) in zip(self.objects, self._places(rng), strict=True):
            kind, size, _ = PARTS[name]
            height = size[1] if kind == mujoco.mjtGeom.mjGEOM_CYLINDER else size[2]
            world.place(name, (x, y, TABLE_TOP + height), yaw=rng.uniform(-np.pi, np.pi))

    def placed(self, world: World, name: str) -> bool:
        """Whether the part lies in the right bin."""
        position = world.object_pos(name)
        inside = np.all(np.abs(position[:2] - TARGET) < BIN_HALF)
        return bool(inside and position[2] < TABLE_TOP + WALL_HEIGHT)

    def success(self, world: World) -> bool:
        return all(self.placed(world, name) and not world.grasps(name) for name in self.objects)

    def reward(self, world: World, shaped: bool) -> float:
        """1 when done; else, if shaped, the share of parts placed plus at most 0.9 of a share for the part nearest to the hand."""
        if self.success(world):
            return 1.0
        if not shaped:
            return 0.0
        open_parts = [name for name in self.objects if not self.placed(world, name)]
        done = len(self.objects) - len(open_parts)
        return (done + max((self._progress(world, name) for name in open_parts), default=0.0)) / len(self.objects)

    def _progress(self, world: World, name: str) -> float:
        position = world.object_pos(name)
        progress = 0.3 * reaching(float(np.linalg.norm(position - world.eef_pos())))
        if world.grasps(name):
            progress += 0.2 + 0.4 * reaching(float(np.linalg.norm(position[:2] - TARGET)))
        return progress

    def _places(self, rng: np.random.Generator) -> np.ndarray:
        """(parts, 2) positions that keep their distance; drawn anew until they do."""
        while True:
            places = rng.uniform(-self.spread, self.spread, size=(len(self.objects), 2))
            gaps = np.linalg.norm(places[:, None] - places[None], axis=-1)[np.triu_indices(len(places), 1)]
            if gaps.min() >= self.gap:
                return places + SOURCE


def add_bin(spec: mujoco.MjSpec, middle: tuple[float, float], rgba: tuple[float, ...], inside: float) -> None:
    """Adds a bin without a floor on the table; `inside` is half of its inner width, metres."""
    body = spec.worldbody.add_body(pos=(*middle, TABLE_TOP + WALL_HEIGHT / 2))
    half = inside + WALL
    for x, y, size in ((half, 0, (WALL, half + WALL)), (-half, 0, (WALL, half + WALL)), (0, half, (half, WALL)), (0, -half, (half, WALL))):
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, pos=(x, y, 0), size=(*size, WALL_HEIGHT / 2), rgba=rgba)
