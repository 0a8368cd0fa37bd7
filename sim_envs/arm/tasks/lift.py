"""Lift: robosuite 1.5.2's Lift, number for number (`environments/manipulation/lift.py`)."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from sim_envs.arm.scene import TABLE_CENTRE, TABLE_TOP
from sim_envs.arm.tasks.base import World, add_object, reaching

REWARD_MAX = 2.25
"""robosuite's unscaled reward of a lifted cube; rewards are divided by it."""


@dataclass(frozen=True, kw_only=True)
class Lift:
    """Done while the cube's middle is more than `height` over the table.

    Attributes:
        half_size: range of each of the cube's half sizes, metres.
        spread: the cube starts within +- spread of the table's middle in x and y, metres.
        drop: gap between cube and table at the start, metres.
        height: metres over the table top.
    """

    name: str = "lift"
    objects: tuple[str, ...] = ("cube",)
    goals: tuple[str, ...] = ()
    horizon: int = 200
    half_size: tuple[float, float] = (0.020, 0.022)
    spread: float = 0.03
    drop: float = 0.01
    height: float = 0.04

    def build(self, spec: mujoco.MjSpec) -> None:
        add_object(spec, "cube", mujoco.mjtGeom.mjGEOM_BOX, (self.half_size[1],) * 3, (0.75, 0.12, 0.1, 1))

    def reset(self, world: World, rng: np.random.Generator) -> None:
        half_size = rng.uniform(*self.half_size, size=3)
        x, y = rng.uniform(-self.spread, self.spread, size=2) + TABLE_CENTRE
        world.resize("cube", half_size)
        world.place("cube", (x, y, TABLE_TOP + self.drop + half_size[2]), yaw=rng.uniform(0.0, 2 * np.pi))

    def success(self, world: World) -> bool:
        return bool(world.object_pos("cube")[2] > TABLE_TOP + self.height)

    def reward(self, world: World, shaped: bool) -> float:
        """1 when lifted; else, if shaped, (reaching + 0.25 if grasped) / 2.25."""
        if self.success(world):
            return 1.0
        if not shaped:
            return 0.0
        distance = float(np.linalg.norm(world.object_pos("cube") - world.eef_pos()))
        return (reaching(distance) + 0.25 * world.grasps("cube")) / REWARD_MAX
