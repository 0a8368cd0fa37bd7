"""One kitchen: gymnasium-robotics' FrankaKitchen-v1, whose compiled model all kitchens of a process share."""

from __future__ import annotations

import contextlib
import copy
import io
from functools import cache
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from rl_core.errors import ArmstackError
from sim_envs.arm.world import SimulationFault

ARM_JOINTS = 7
START_NOISE = 0.02
"""An arm's joint starts within this of the environment's posture, rad."""
STEP_S = 0.08
VELOCITY = 2.0
"""What an action of 1 asks of a joint: rad/s, of a finger m/s. The environment adds it for a step to the measured position."""
_DIVERGED = (mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC)


class Kitchen:
    """FrankaKitchen-v1 with its own sensor noise; a start follows from its seed alone.

    Attributes:
        model, data: MuJoCo's; to be read only.
        goals: what each of the environment's elements reads when its task is done.
        threshold: how near to that is done.

    Raises:
        ArmstackError: gymnasium-robotics is not installed.
    """

    def __init__(self) -> None:
        first = _compiled()
        self._env, self._robot = copy.copy(first), copy.copy(first.robot_env)
        self.model, self.data = first.model, mujoco.MjData(first.model)
        self._env.robot_env, self._env.data, self._robot.data = self._robot, self.data, self.data
        self._env.step_task_completions, self._env.episode_task_completions = [], []
        # The environment's is a view of its data's velocities, which here would be those of another kitchen.
        self._robot.init_qvel = np.zeros(self.model.nv)
        self._start = first.robot_env.init_qpos
        self.goals: dict[str, NDArray[np.float64]] = dict(first.goal)
        self.threshold = _package().BONUS_THRESH
        self.observation = np.zeros(59)
        self._elements: dict[str, NDArray[np.float64]] = {}

    def reset(self, seed: int) -> None:
        """Everything anew; the arm's joints within `START_NOISE` of the environment's posture and within their range."""
        noise = np.random.default_rng((seed, 1)).uniform(-START_NOISE, START_NOISE, ARM_JOINTS)
        low, high = self.model.jnt_range[:ARM_JOINTS].T
        start = self._start.copy()
        start[:ARM_JOINTS] = np.clip(start[:ARM_JOINTS] + noise, low, high)
        self._robot.init_qpos = start
        self._keep(self._env.reset(seed=seed)[0])

    def step(self, action: NDArray[np.float64]) -> None:
        """One step of `STEP_S` with velocities (9,) in [-1, 1].

        Raises:
            SimulationFault: the physics diverged.
        """
        before = self.data.time
        self._keep(self._env.step(action)[0])
        if any(self.data.warning[kind].number for kind in _DIVERGED):  # MuJoCo has started anew
            raise SimulationFault(f"physics diverged after {before:.2f} s of simulated time; reset the world")

    def element(self, task: str) -> NDArray[np.float64]:
        """What the element of a task reads now, without noise, in the order of `goals`."""
        return self._elements[task]

    def done(self, task: str) -> bool:
        """The environment's own test of a task: its element's distance from the goal is below the threshold."""
        return bool(np.linalg.norm(self._elements[task] - self.goals[task]) < self.threshold)

    def _keep(self, seen: dict[str, Any]) -> None:
        self.observation, self._elements = seen["observation"], {task: value.copy() for task, value in seen["achieved_goal"].items()}


def _package() -> Any:
    """The environment's module."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # where the package prints notes about other environments of its
            from gymnasium_robotics.envs.franka_kitchen import kitchen_env
    except ImportError as error:
        raise ArmstackError(f"the Franka kitchen is a world of gymnasium-robotics: pip install 'armstack[kitchen]' ({error})") from error
    return kitchen_env


@cache
def _compiled() -> Any:
    """The environment with all its tasks, never stepped: compiling its meshes takes seconds, a kitchen's own data milliseconds."""
    package = _package()
    return package.KitchenEnv(
        tasks_to_complete=list(package.OBS_ELEMENT_GOALS), terminate_on_tasks_completed=False, remove_task_when_completed=False
    )
