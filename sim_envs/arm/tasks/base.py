"""What a task is to the world, and what a world is to a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import mujoco
import numpy as np


class World(Protocol):
    """What a task may read and set. Positions are metres in the base frame."""

    def eef_pos(self) -> np.ndarray:
        """End-effector position (3,)."""
        ...

    def object_pos(self, name: str) -> np.ndarray:
        """Position (3,) of an object or a goal."""
        ...

    def grasps(self, name: str) -> bool:
        """Whether both finger pads touch the object."""
        ...

    def travel(self, joint: str) -> float:
        """How far a sliding joint of the scene is from where it starts, metres."""
        ...

    def place(self, name: str, position: Sequence[float] | np.ndarray, yaw: float = 0.0) -> None:
        """Puts an object or a goal somewhere, at rest."""
        ...

    def resize(self, name: str, half_size: np.ndarray) -> None:
        """Gives a box new half sizes (3,) at its density."""
        ...


class Task(Protocol):
    """Things on the table, where they start, and when the task is done. Holds no state."""

    @property
    def name(self) -> str:
        """Name on command lines and in environment ids."""
        ...

    @property
    def objects(self) -> tuple[str, ...]:
        """Free bodies; each gives `NAME_pos` and `NAME_quat`."""
        ...

    @property
    def goals(self) -> tuple[str, ...]:
        """Points without a heading, on mocap bodies or sliding on one; each gives `NAME_pos`."""
        ...

    @property
    def horizon(self) -> int:
        """Policy steps of an episode at 20 Hz."""
        ...

    def build(self, spec: mujoco.MjSpec) -> None:
        """Adds the task's things to the scene."""
        ...

    def reset(self, world: World, rng: np.random.Generator) -> None:
        """Places the things; draws from `rng` only."""
        ...

    def success(self, world: World) -> bool:
        """Whether the task is done now."""
        ...

    def reward(self, world: World, shaped: bool) -> float:
        """Reward in [0, 1]; 1 exactly where `success`."""
        ...


def reaching(distance: float) -> float:
    """robosuite's reaching term: 1 at distance 0 m, 0.24 at 10 cm."""
    return 1.0 - float(np.tanh(10.0 * distance))


def add_object(
    spec: mujoco.MjSpec, name: str, kind: mujoco.mjtGeom, size: Sequence[float], rgba: Sequence[float], density: float = 1000.0
) -> None:
    """Adds a free body of one geom with robosuite's friction (MuJoCo's default)."""
    body = spec.worldbody.add_body(name=name)
    body.add_freejoint(name=name)
    body.add_geom(name=name, type=kind, size=tuple(size), rgba=tuple(rgba), density=density)


def add_goal(spec: mujoco.MjSpec, name: str, rgba: Sequence[float]) -> None:
    """Adds a point that touches nothing and can be moved."""
    body = spec.worldbody.add_body(name=name, mocap=True)
    body.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_SPHERE, size=(0.015, 0, 0), rgba=tuple(rgba), contype=0, conaffinity=0, group=1)
