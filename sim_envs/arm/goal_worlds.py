"""ArmGoalWorlds: the native arm, many at once, with a goal for hand and object. Physics and control are `ArmWorld`'s."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Action, Channel, RobotContract
from rl_core.pear.worlds import Demonstration, GoalObservation, GoalSpace, GoalWorldError
from sim_envs.arm.observation import GRIPPER, POSITION_STEP, ROTATION_STEP, observation
from sim_envs.arm.scene import TABLE_TOP
from sim_envs.arm.tasks.goal_tasks import GOAL_TASKS, REACHED
from sim_envs.arm.world import ArmWorld
from sim_envs.experts.goal_carry import GoalCarry
from sim_envs.experts.motion import pointing_down, rotation_between
from sim_envs.experts.skill import Skill

if TYPE_CHECKING:
    from sim_envs.arm.rendering import Renderer

PERIOD_S = 0.1
_REPEAT = 2
"""Control periods of 0.05 s in a step."""
_SUBSTEPS = 25
_BOX = GoalSpace(centre=np.array([0.5, 0.0, TABLE_TOP + 0.18] * 2), half_width=np.array([0.18, 0.30, 0.18] * 2), threshold=REACHED)
_POINT = ("x", "y", "z")
_ACTED = [0, 1, 2, 6]
"""Entries of an `ee_delta` action that an action here has."""
_ATTEMPTS = 3
"""A demonstrator that has dropped the thing begins again, with other noise."""


class ArmGoalWorlds:
    """`n` arms with one of the `GOAL_TASKS`; a `rl_core.pear.worlds.GoalWorlds`.

    A step lasts 0.1 s. Its action is the displacement of the hand, 5 cm along each base axis for 1, which robosuite's operational space
    control pursues; the hand keeps pointing down; the gripper is -1 = open, +1 = closed. Rows are stepped by threads.

    Args:
        n: how many.
        task: a name of `GOAL_TASKS`.

    Raises:
        ValueError: unknown task; names the valid ones.
    """

    goal = _BOX

    def __init__(self, n: int, task: str = "goal_pick") -> None:
        if task not in GOAL_TASKS:
            raise ValueError(f"no goal task {task!r}; tasks: {', '.join(GOAL_TASKS)}")
        self.n = n
        self.task = GOAL_TASKS[task]
        self.horizon = self.task.decisions
        self.contract = _contract(self.task.thing)
        self.primitives = HandPrimitives()
        self.worlds = [ArmWorld(task, controller="osc_pose") for _ in range(n)]
        self._pool = ThreadPoolExecutor(min(n, len(os.sched_getaffinity(0))), thread_name_prefix="arms")
        self._renderers: dict[int, Renderer] = {}

    def reset(self, seeds: Sequence[int]) -> GoalObservation:
        """See `GoalWorlds.reset`."""
        if len(seeds) != self.n:
            raise GoalWorldError(f"{len(seeds)} seeds, valid: one for each of the {self.n} rows")
        list(self._pool.map(lambda world, seed: world.reset(int(seed)), self.worlds, seeds))
        return self._observe()

    def step(self, actions: NDArray[np.float32]) -> GoalObservation:
        """One step of every arm: (n, 4).

        Raises:
            GoalWorldError: not finite, or of another shape.
        """
        actions = np.asarray(actions, np.float64)
        if actions.shape != (self.n, 4) or not np.isfinite(actions).all():
            raise GoalWorldError(f"actions of shape {actions.shape}, valid: finite, {(self.n, 4)}")
        list(self._pool.map(_move, self.worlds, np.clip(actions, -1.0, 1.0)))
        return self._observe()

    def demonstrations(self, seeds: Sequence[int]) -> list[Demonstration]:
        """By `GoalCarry`, until it has done.

        Raises:
            GoalWorldError: it does not arrive; names the seed.
        """
        worlds = ArmGoalWorlds(1, self.task.name)
        try:
            return [worlds._demonstrate(seed) for seed in seeds]
        finally:
            worlds.close()

    def _demonstrate(self, seed: int) -> Demonstration:
        skill = Skill(speed=0.5, noise=0.02, aim=0.001, tolerance=self.task.precision)  # fast, at ten decisions a second
        for attempt in range(_ATTEMPTS):
            seen, actions = [self.reset([seed])], list[NDArray[np.float32]]()
            expert = GoalCarry(self.task, skill)
            expert.reset(seed + attempt * 2**31)
            while not expert.done and len(actions) < self.horizon:
                actions.append(expert.act(observation(self.worlds[0].state(), self.task.name))[_ACTED].astype(np.float32))
                seen.append(self.step(actions[-1][None]))
            if self.goal.reached(seen[-1]["achieved_goal"], seen[-1]["desired_goal"])[0]:
                return Demonstration(
                    seed=seed,
                    observation=np.concatenate([values["observation"] for values in seen]),
                    achieved=np.concatenate([values["achieved_goal"] for values in seen]),
                    actions=np.array(actions),
                    goal=seen[0]["desired_goal"][0],
                )
        raise GoalWorldError(f"{self.task.name}, seed {seed}: the demonstrator arrived in none of {_ATTEMPTS} attempts")

    def render(self, row: int = 0) -> NDArray[np.uint8]:
        """What the front camera of a row sees, 256 x 256."""
        if row not in self._renderers:
            from sim_envs.arm.rendering import Renderer  # brings graphics libraries

            self._renderers[row] = Renderer(self.worlds[row])
        return self._renderers[row].render(self.worlds[row].qpos())

    def close(self) -> None:
        """Ends the threads and frees the renderers."""
        self._pool.shutdown()
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()

    def _observe(self) -> GoalObservation:
        rows = []
        for world in self.worlds:
            reading = world.state()
            thing, eef = reading.objects[self.task.thing][0], reading.eef_pos
            rows.append(np.concatenate([eef, [reading.gripper_pos], thing, thing - eef]))
        return {
            "observation": np.array(rows, np.float32),
            "achieved_goal": np.array([self.task.achieved(world) for world in self.worlds], np.float32),
            "desired_goal": np.array([self.task.desired(world) for world in self.worlds], np.float32),
        }


def _move(world: ArmWorld, action: NDArray[np.float64]) -> None:
    """One step of one arm, (4,)."""
    for _ in range(_REPEAT):
        upright = rotation_between(world.state().eef_quat, pointing_down(0.0)) / ROTATION_STEP
        world.set_pose_delta(np.concatenate([action[:3], upright, action[3:]]))
        world.advance(_SUBSTEPS)


def _contract(thing: str) -> RobotContract:
    def position(name: str) -> Channel:
        return Channel(name=name, names=_POINT, unit="m", frame="base", rate_hz=1 / PERIOD_S)

    return RobotContract(
        robot="panda",
        observation=(
            position("eef_pos"),
            Channel(name="gripper_pos", names=(GRIPPER.name,), unit=GRIPPER.unit, rate_hz=1 / PERIOD_S),
            position(f"{thing}_pos"),
            position(f"gripper_to_{thing}_pos"),
            Channel(name="desired_goal", names=tuple(f"{end}_{axis}" for end in ("eef", thing) for axis in _POINT), unit="m", frame="base"),
        ),
        action=Action(
            names=(*_POINT, GRIPPER.name), meaning="delta", space="end_effector", scale=(POSITION_STEP,) * 3 + (1.0,),
            units=("m",) * 3 + (GRIPPER.unit,), period_s=PERIOD_S, gripper=GRIPPER, controller="osc_pose",
        ),
    )  # fmt: skip


class HandPrimitives:
    """Scripted primitives: go to a point with the gripper as it is, open it, close it."""

    names: tuple[str, ...] = ("go_to", "open", "close")
    arguments: int = 3

    def act(
        self, observation: NDArray[np.float32], chosen: NDArray[np.int64], argument: NDArray[np.float32], age: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """See `Primitives.act`; the argument is the point, from -1 to 1 across the goal space."""
        eef, opening = observation[:, :3], observation[:, 3]
        point = _BOX.centre[:3] + _BOX.half_width[:3] * argument
        way = (point - eef) / POSITION_STEP
        way *= (chosen == 0)[:, None] / np.maximum(np.abs(way).max(axis=1, keepdims=True), 1.0)
        held = np.where(opening < 0.9 * GRIPPER.open, 1.0, -1.0)
        gripper = np.where(chosen == 0, held, np.where(chosen == 1, -1.0, 1.0))
        return np.concatenate([way, gripper[:, None]], axis=1).astype(np.float32)
