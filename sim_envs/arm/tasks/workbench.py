"""Workbench: tasks made of shared steps on one scene, each with its instruction. All offer the same channels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import mujoco
import numpy as np

from sim_envs.arm.scene import TABLE_TOP
from sim_envs.arm.tasks import workbench_scene as scene
from sim_envs.arm.tasks.base import World, reaching
from sim_envs.arm.tasks.workbench_scene import FIXTURES, OBJECT_HEIGHT, PLACES, build_workbench

LIFTED = 0.05
"""An object whose middle is this far over where it stood is lifted, metres."""
ABOVE = 0.06
"""Reaching means to hold the fingertips this far over the object's middle, metres..."""
REACHED = 0.02
"""...to within this, metres."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to do.

    Attributes:
        kind: `reach`, `lift` and `place` have an object; `push` and `open` are the button's and the drawer's.
        thing: `block`, `can`, `button` or `drawer`.
        side: where to place it.
    """

    kind: Literal["reach", "lift", "place", "push", "open"]
    thing: str
    side: Literal["left", "right"] = "left"

    @property
    def primitives(self) -> tuple[str, ...]:
        """Tags of the motions it is made of, in order; other tasks' steps share them."""
        reach = f"reach_{self.thing}"
        if self.kind in ("push", "open"):
            return reach, f"{self.kind}_{self.thing}"
        grasp = (reach, f"grasp_{self.thing}", "lift")
        return {"reach": (reach,), "lift": grasp, "place": (*grasp, f"place_{self.side}")}[self.kind]

    def done(self, world: World) -> bool:
        """Whether it is done now."""
        position = world.object_pos(self.thing)
        if self.kind == "reach":
            return bool(np.linalg.norm(position + (0.0, 0.0, ABOVE) - world.eef_pos()) < REACHED)
        if self.kind == "lift":
            return bool(position[2] > TABLE_TOP + OBJECT_HEIGHT[self.thing] + LIFTED)
        if self.kind == "push":
            return bool(position[2] < FIXTURES["button"][2] - scene.PRESSED)
        if self.kind == "open":
            return bool(world.travel("drawer") > scene.OPENED)
        inside = np.all(np.abs(position[:2] - world.object_pos(f"{self.side}_tray")[:2]) < scene.TRAY_HALF)
        return bool(inside and position[2] < TABLE_TOP + OBJECT_HEIGHT[self.thing] + scene.WALL_HEIGHT and not world.grasps(self.thing))

    def progress(self, world: World) -> float:
        """How near it is to being done, in [0, 1): the hand to the thing, then the thing to its tray."""
        position = world.object_pos(self.thing)
        near = reaching(float(np.linalg.norm(position - world.eef_pos())))
        if self.kind != "place":
            return 0.9 * near
        held = 0.0
        if world.grasps(self.thing):
            held = 0.2 + 0.4 * reaching(float(np.linalg.norm(position[:2] - world.object_pos(f"{self.side}_tray")[:2])))
        return 0.3 * near + held


@dataclass(frozen=True, kw_only=True)
class Workbench:
    """Done while all of its steps are.

    Attributes:
        instruction: the task in words.
        steps: what to do, in this order.
        offset: how far from its place an object starts, in x and y: the larger of the two distances lies in this range, metres.
        turn: an object starts turned by at most this, rad.
        jitter: trays, button and drawer stand within +- jitter of their places in x and y, metres.
    """

    name: str
    instruction: str
    steps: tuple[Step, ...]
    objects: tuple[str, ...] = tuple(PLACES)
    goals: tuple[str, ...] = tuple(FIXTURES)
    offset: tuple[float, float] = (0.0, 0.025)
    turn: float = 0.25
    jitter: float = 0.01

    @property
    def horizon(self) -> int:
        """Twice what a steady hand needs."""
        return sum({"reach": 70, "lift": 140, "place": 300, "push": 120, "open": 200}[step.kind] for step in self.steps)

    @property
    def primitives(self) -> tuple[str, ...]:
        """The primitives of all steps, in order."""
        return tuple(primitive for step in self.steps for primitive in step.primitives)

    def shifted(self) -> Workbench:
        """The same task with the objects farther from their places than any episode of the task itself has them."""
        return replace(self, name=f"{self.name}_shifted", offset=(self.offset[1], 2 * self.offset[1]), turn=2 * self.turn)

    def build(self, spec: mujoco.MjSpec) -> None:
        build_workbench(spec)

    def reset(self, world: World, rng: np.random.Generator) -> None:
        for name, point in FIXTURES.items():
            world.place(name, np.add(point, (*rng.uniform(-self.jitter, self.jitter, size=2), 0.0)))
        for (name, (x, y)), (dx, dy) in zip(PLACES.items(), self._offsets(rng), strict=True):
            world.place(name, (x + dx, y + dy, TABLE_TOP + OBJECT_HEIGHT[name]), yaw=rng.uniform(-self.turn, self.turn))

    def success(self, world: World) -> bool:
        return all(step.done(world) for step in self.steps)

    def reward(self, world: World, shaped: bool) -> float:
        """1 when done; else, if shaped, the share of steps done plus at most 0.9 of a share for the first that is not."""
        if self.success(world):
            return 1.0
        if not shaped:
            return 0.0
        undone = [step for step in self.steps if not step.done(world)]
        return (len(self.steps) - len(undone) + undone[0].progress(world)) / len(self.steps)

    def _offsets(self, rng: np.random.Generator) -> np.ndarray:
        """(2, 2) of the objects from their places; drawn anew until they keep their distance."""
        near, far = self.offset
        x = np.array(list(PLACES.values()))[:, 0]
        while True:
            offsets = rng.uniform(-far, far, size=(2, 2))
            if np.abs(offsets).max(axis=1).min() >= near and np.diff(x + offsets[:, 0]).item() >= scene.GAP:
                return offsets


def _step(kind: Literal["reach", "lift", "push", "open"], thing: str) -> Step:
    return Step(kind=kind, thing=thing)


def _place(thing: str, side: Literal["left", "right"]) -> Step:
    return Step(kind="place", thing=thing, side=side)


_PUSH, _OPEN = _step("push", "button"), _step("open", "drawer")

CORPUS: tuple[Workbench, ...] = (
    Workbench(name="reach_block", instruction="hold the gripper over the red block", steps=(_step("reach", "block"),)),
    Workbench(name="lift_block", instruction="pick up the red block", steps=(_step("lift", "block"),)),
    Workbench(name="lift_can", instruction="pick up the blue can", steps=(_step("lift", "can"),)),
    Workbench(name="block_left", instruction="put the red block in the left tray", steps=(_place("block", "left"),)),
    Workbench(name="block_right", instruction="put the red block in the right tray", steps=(_place("block", "right"),)),
    Workbench(name="can_right", instruction="put the blue can in the right tray", steps=(_place("can", "right"),)),
    Workbench(name="push_button", instruction="press the green button", steps=(_PUSH,)),
    Workbench(name="open_drawer", instruction="open the drawer", steps=(_OPEN,)),
    Workbench(
        name="drawer_can_right", instruction="open the drawer, then put the blue can in the right tray",
        steps=(_OPEN, _place("can", "right")),
    ),
    Workbench(
        name="button_block_left", instruction="press the green button, then put the red block in the left tray",
        steps=(_PUSH, _place("block", "left")),
    ),
)  # fmt: skip
"""Tasks to retrieve from. `block_left` and `block_right` conflict: equal pictures and motions up to the lift, opposite trays."""

TARGETS: tuple[Workbench, ...] = (
    Workbench(name="can_left", instruction="put the blue can in the left tray", steps=(_place("can", "left"),)),
    Workbench(
        name="button_can_left", instruction="press the green button, then put the blue can in the left tray",
        steps=(_PUSH, _place("can", "left")),
    ),
)  # fmt: skip
"""Compositions that no task of the corpus has: all there that grasps the can puts it right, if anywhere."""

WORKBENCH: dict[str, Workbench] = {task.name: task for task in (*CORPUS, *TARGETS, *(task.shifted() for task in TARGETS))}
