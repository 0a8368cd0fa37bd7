"""Sort: put the one part on the table into the bin it belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from sim_envs.arm.scene import TABLE_TOP
from sim_envs.arm.tasks.base import World, add_goal, add_object, reaching
from sim_envs.arm.tasks.pick_place import WALL_HEIGHT, add_bin

BIN_HALF = 0.07
"""Half of a bin's inner width and length, metres."""
BINS: dict[str, tuple[float, float]] = {"left": (0.5, 0.21), "right": (0.5, -0.21)}
"""Middles of the two bins in x and y, metres in the base frame: left is +y."""
PART_HALF = 0.02


@dataclass(frozen=True, kw_only=True)
class Sort:
    """Done when the part lies in its bin and is not held. `bin` says where that is; each of the two in half of the episodes.

    Attributes:
        start: box (low, high) of the part's middle at the start in x and y, metres.
    """

    name: str = "sort"
    objects: tuple[str, ...] = ("part",)
    goals: tuple[str, ...] = ("bin",)
    horizon: int = 300
    start: tuple[tuple[float, float], tuple[float, float]] = ((0.43, -0.06), (0.57, 0.06))

    def build(self, spec: mujoco.MjSpec) -> None:
        for middle, rgba in zip(BINS.values(), ((0.3, 0.55, 0.35, 1), (0.35, 0.4, 0.6, 1)), strict=True):
            add_bin(spec, middle, rgba, BIN_HALF)
        add_object(spec, "part", mujoco.mjtGeom.mjGEOM_BOX, (PART_HALF,) * 3, (0.75, 0.12, 0.1, 1), density=500.0)
        add_goal(spec, "bin", (0.1, 0.8, 0.2, 0.6))

    def reset(self, world: World, rng: np.random.Generator) -> None:
        world.place("part", (*rng.uniform(*self.start), TABLE_TOP + PART_HALF), yaw=rng.uniform(-0.3, 0.3))
        world.place("bin", (*BINS[str(rng.choice(list(BINS)))], TABLE_TOP))

    def placed(self, world: World) -> bool:
        """Whether the part lies in its bin."""
        position = world.object_pos("part")
        inside = np.all(np.abs(position[:2] - world.object_pos("bin")[:2]) < BIN_HALF)
        return bool(inside and position[2] < TABLE_TOP + WALL_HEIGHT)

    def success(self, world: World) -> bool:
        return self.placed(world) and not world.grasps("part")

    def reward(self, world: World, shaped: bool) -> float:
        """1 when done; else, if shaped, at most 0.9 for a part in the hand over its bin."""
        if self.success(world):
            return 1.0
        if not shaped:
            return 0.0
        position = world.object_pos("part")
        progress = 0.3 * reaching(float(np.linalg.norm(position - world.eef_pos())))
        if world.grasps("part"):
            progress += 0.2 + 0.4 * reaching(float(np.linalg.norm(position[:2] - world.object_pos("bin")[:2])))
        return progress
