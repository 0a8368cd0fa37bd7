"""KitchenWorlds: Franka kitchens, many at once. A goal is what the elements of some tasks shall read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Action, Channel, RobotContract
from rl_core.pear.worlds import Demonstration, GoalObservation, GoalSpace, GoalWorldError
from sim_envs.kitchen.kitchen import STEP_S, VELOCITY, Kitchen

if TYPE_CHECKING:
    from sim_envs.kitchen.pictures import KitchenCamera

TASKS = ("microwave", "kettle", "light switch", "slide cabinet")
"""The tasks there is a demonstrator for, in its order."""
_XYZ, _XYZW = ("x", "y", "z"), ("x", "y", "z", "w")
_ELEMENTS: dict[str, tuple[tuple[str, float, float], ...]] = {
    "microwave": (("microwave", -2.094, 0.0),),
    "kettle": (
        ("kettle_x", -0.6, 0.1), ("kettle_y", 0.2, 0.9), ("kettle_z", 1.6, 1.8),
        ("kettle_qx", 0.0, 0.0), ("kettle_qy", 0.0, 0.0), ("kettle_qz", -0.06, -0.06), ("kettle_qw", 0.99, 0.99),
    ),
    "light switch": (("light_switch", -0.7, 0.0), ("light", -0.05, 0.0)),
    "slide cabinet": (("slide_cabinet", 0.0, 0.44),),
}  # fmt: skip
"""Dimensions of a goal by task: name and where subgoals lie. Joints' ranges; the kettle on the oven, upright as the goal has it."""
_REORDER = {"kettle": [0, 1, 2, 4, 5, 6, 3]}
"""The environment's quaternion is w, x, y, z."""
_ARM = tuple(f"panda_joint{i}" for i in range(1, 8))
_FINGERS = ("finger_right", "finger_left")
_HINGES = {
    "bottom_right_knob": 0, "bottom_left_knob": 2, "top_right_knob": 4, "top_left_knob": 6,
    "light_switch": 8, "left_hinge_cabinet": 11, "right_hinge_cabinet": 12, "microwave": 13,
}  # fmt: skip
_SLIDES = {
    "bottom_right_burner": 1, "bottom_left_burner": 3, "top_right_burner": 5, "top_left_burner": 7, "light": 9, "slide_cabinet": 10,
}  # fmt: skip
"""Joints of the kitchen and where among its positions, 18 + i, and velocities, 39 + i, the environment's observation has them."""
_CHANNELS: tuple[tuple[str, tuple[str, ...], str, list[int]], ...] = (
    ("joint_pos", _ARM, "rad", list(range(7))),
    ("finger_pos", _FINGERS, "m", [7, 8]),
    ("joint_vel", _ARM, "rad/s", list(range(9, 16))),
    ("finger_vel", _FINGERS, "m/s", [16, 17]),
    ("hinge_pos", tuple(_HINGES), "rad", [18 + i for i in _HINGES.values()]),
    ("slide_pos", tuple(_SLIDES), "m", [18 + i for i in _SLIDES.values()]),
    ("kettle_pos", _XYZ, "m", [32, 33, 34]),
    ("kettle_quat", _XYZW, "1", [36, 37, 38, 35]),
    ("hinge_vel", tuple(_HINGES), "rad/s", [39 + i for i in _HINGES.values()]),
    ("slide_vel", tuple(_SLIDES), "m/s", [39 + i for i in _SLIDES.values()]),
    ("kettle_linear_vel", _XYZ, "m/s", [53, 54, 55]),
    ("kettle_angular_vel", _XYZ, "rad/s", [56, 57, 58]),
)
_COLUMNS = [column for _, _, _, columns in _CHANNELS for column in columns]
_SPEEDS = (1.0, 0.8)
"""A demonstrator that has not done its tasks begins again, and slower."""


class KitchenWorlds:
    """`n` Franka kitchens; a `rl_core.pear.worlds.GoalWorlds`, registered as `armstack/Kitchen-v0`.

    Observation: FrankaKitchen-v1's 59 numbers with its noise, by channels; quaternions are x, y, z, w. Action: the velocities of its nine
    joints. Goal: the numbers of the tasks' elements. What is achieved is what they read, and exactly the goal's numbers for a task that
    the environment counts as done (its element less than 0.3 away). So a goal is reached when the environment counts all its tasks as
    done, and demonstrated subgoals are snapped to the elements' goals. Rows are stepped by threads.

    Args:
        n: how many.
        tasks: of `TASKS`, at least one.

    Raises:
        ValueError: an unknown task, one that is named twice, or none.
        ArmstackError: gymnasium-robotics is not installed.
    """

    horizon = 280
    primitives = None

    def __init__(self, n: int, tasks: Sequence[str] = TASKS) -> None:
        unknown = [task for task in tasks if task not in TASKS]
        if unknown or not tasks or len(set(tasks)) < len(tasks):
            raise ValueError(f"kitchen tasks {list(tasks)}; valid: some of {list(TASKS)}, each once")
        self.n = n
        self.tasks = tuple(task for task in TASKS if task in tasks)
        self.contract = _contract(self.tasks)
        self.kitchens = [Kitchen() for _ in range(n)]
        low, high = np.array([limits for task in self.tasks for _, *limits in _ELEMENTS[task]]).T
        # What is not done is at least the kitchen's threshold away, what is done is not away at all; the margin is float32's.
        threshold = self.kitchens[0].threshold - 1e-4
        self.goal = GoalSpace(centre=(low + high) / 2, half_width=(high - low) / 2, threshold=threshold)
        self._desired = np.concatenate([_in_order(task, self.kitchens[0].goals[task]) for task in self.tasks]).astype(np.float32)
        self._pool = ThreadPoolExecutor(min(n, len(os.sched_getaffinity(0))), thread_name_prefix="kitchens")
        self._each = self._pool.map if n > 1 else map  # one row alone is not worth a thread's wake-up
        self._cameras: dict[int, KitchenCamera] = {}
        self.reset(range(n))

    def reset(self, seeds: Sequence[int]) -> GoalObservation:
        """See `GoalWorlds.reset`; the goal is always the same, a seed moves the arm's start and the sensors' noise."""
        if len(seeds) != self.n:
            raise GoalWorldError(f"{len(seeds)} seeds, valid: one for each of the {self.n} rows")
        for kitchen, seed in zip(self.kitchens, seeds, strict=True):
            kitchen.reset(int(seed))
        return self._observe()

    def step(self, actions: NDArray[np.float32]) -> GoalObservation:
        """One step of every kitchen: (n, 9).

        Raises:
            GoalWorldError: not finite, or of another shape.
            SimulationFault: the physics diverged.
        """
        actions = np.asarray(actions, np.float64)
        if actions.shape != (self.n, 9) or not np.isfinite(actions).all():
            raise GoalWorldError(f"actions of shape {actions.shape}, valid: finite, {(self.n, 9)}")
        list(self._each(Kitchen.step, self.kitchens, actions))
        return self._observe()

    def demonstrations(self, seeds: Sequence[int]) -> list[Demonstration]:
        """Scripted way-points, one task after the other; see `sim_envs.kitchen.demonstrator`.

        Raises:
            GoalWorldError: the tasks do not get done; names the seed.
        """
        worlds = KitchenWorlds(1, self.tasks)
        try:
            return [worlds._demonstrate(seed) for seed in seeds]
        finally:
            worlds.close()

    def _demonstrate(self, seed: int) -> Demonstration:
        from sim_envs.kitchen.demonstrator import demonstrate

        kitchen = self.kitchens[0]
        for speed in _SPEEDS:
            seen, actions = [self.reset([seed])], list[NDArray[np.float32]]()
            for action in demonstrate(kitchen, self.tasks, speed):
                if len(actions) == self.horizon:
                    break
                actions.append(action)
                seen.append(self.step(action[None]))
            if self.goal.reached(seen[-1]["achieved_goal"], seen[-1]["desired_goal"])[0]:
                return Demonstration(
                    seed=seed,
                    observation=np.concatenate([values["observation"] for values in seen]),
                    achieved=np.concatenate([values["achieved_goal"] for values in seen]),
                    actions=np.array(actions),
                    goal=seen[0]["desired_goal"][0],
                )
        left = [task for task in self.tasks if not kitchen.done(task)]
        raise GoalWorldError(f"kitchen, seed {seed}: the demonstrator left {left} undone in each of {len(_SPEEDS)} attempts")

    def render(self, row: int = 0) -> NDArray[np.uint8]:
        """A row seen from behind the arm, (240, 320, 3), RGB."""
        if row not in self._cameras:
            from sim_envs.kitchen.pictures import KitchenCamera  # brings graphics libraries

            self._cameras[row] = KitchenCamera(self.kitchens[row])
        return self._cameras[row].picture()

    def close(self) -> None:
        """Ends the threads and frees the graphics memory."""
        self._pool.shutdown()
        for camera in self._cameras.values():
            camera.close()
        self._cameras.clear()

    def _observe(self) -> GoalObservation:
        return {
            "observation": np.array([kitchen.observation[_COLUMNS] for kitchen in self.kitchens], np.float32),
            "achieved_goal": np.array([self._achieved(kitchen) for kitchen in self.kitchens], np.float32),
            "desired_goal": np.tile(self._desired, (self.n, 1)),
        }

    def _achieved(self, kitchen: Kitchen) -> NDArray[np.float64]:
        reads = [kitchen.goals[task] if kitchen.done(task) else kitchen.element(task) for task in self.tasks]
        return np.concatenate([_in_order(task, values) for task, values in zip(self.tasks, reads, strict=True)])


def _in_order(task: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[_REORDER[task]] if task in _REORDER else values


def _contract(tasks: Sequence[str]) -> RobotContract:
    rate = 1 / STEP_S
    channels = [
        Channel(
            name=name, kind="quaternion" if name == "kettle_quat" else "vector", names=names, unit=unit,
            frame="kitchen" if name.startswith("kettle") else "", rate_hz=rate,
        )
        for name, names, unit, _ in _CHANNELS
    ]  # fmt: skip
    dimensions = tuple(name for task in tasks for name, _, _ in _ELEMENTS[task])
    return RobotContract(
        robot="franka_kitchen",
        observation=(*channels, Channel(name="desired_goal", names=dimensions, frame="kitchen", rate_hz=rate)),
        action=Action(
            names=(*_ARM, *_FINGERS), meaning="velocity", space="joint", scale=(VELOCITY,) * 9, units=("rad/s",) * 7 + ("m/s",) * 2,
            frame="", period_s=STEP_S,
        ),
    )  # fmt: skip
