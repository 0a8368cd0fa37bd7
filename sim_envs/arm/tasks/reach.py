"""Reach: bring the end effector to a point over the table."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from sim_envs.arm.scene import TABLE_CENTRE, TABLE_TOP
from sim_envs.arm.tasks.base import World, add_goal, reaching


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Done within `tolerance` of the goal.

    Attributes:
        low: lower corner of the goals' box, metres from the middle of the table top.
        high: upper corner.
        tolerance: metres.
    """

    name: str = "reach"
    objects: tuple[str, ...] = ()
    goals: tuple[str, ...] = ("goal",)
    horizon: int = 100
    low: tuple[float, float, float] = (-0.15, -0.2, 0.05)
    high: tuple[float, float, float] = (0.1, 0.2, 0.35)
    tolerance: float = 0.02

    def build(self, spec: mujoco.MjSpec) -> None:
        add_goal(spec, "goal", (0.1, 0.8, 0.2, 0.6))

    def reset(self, world: World, rng: np.random.Generator) -> None:
        world.place("goal", rng.uniform(self.low, self.high) + (*TABLE_CENTRE, TABLE_TOP))

    def distance(self, world: World) -> float:
        """End effector to goal, metres."""
        return float(np.linalg.norm(world.object_pos("goal") - world.eef_pos()))

    def success(self, world: World) -> bool:
        return self.distance(world) < self.tolerance

    def reward(self, world: World, shaped: bool) -> float:
        distance = self.distance(world)
        if distance < self.tolerance:
            return 1.0
        return reaching(distance) if shaped else 0.0
