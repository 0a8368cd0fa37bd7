"""Gymnasium adapter for robosuite's tasks with one Panda, under the contract of this package's own arm worlds.

robosuite is no dependency of this package: `make setup` installs it. Its default Panda controller (`OSC_POSE`, goals relative
to the achieved pose, axes of the base link) is what the contract's end-effector delta means.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any

import gymnasium
import mujoco  # noqa: F401  before robosuite, so that it reads MUJOCO_GL as the user set it
import numpy as np

from rl_core.contract import Channel, RobotContract
from rl_core.errors import ArmstackError
from sim_envs.arm.observation import world_contract
from sim_envs.arm.world import FaultyAction, SimulationFault
from sim_envs.robosuite_observation import RobosuiteObserver

ARM_CHANNELS = ("joint_pos", "joint_vel", "eef_pos", "eef_quat", "gripper_pos")


class RobosuiteMissing(ArmstackError, ImportError):
    """robosuite is not installed; the message says what to do."""


def import_robosuite() -> ModuleType:
    """Imports robosuite and leaves the process as it was.

    robosuite overwrites MUJOCO_GL, which decides how later renderers draw, and warns about optional parts of its own.

    Raises:
        RobosuiteMissing: it, or a package it needs, is not installed.
    """
    with undisturbed_process():
        try:
            return importlib.import_module("robosuite")
        except ModuleNotFoundError as error:
            raise RobosuiteMissing(f"robosuite cannot be imported ({error}); `make setup` installs it with what it needs") from error


class RobosuiteEnv(gymnasium.Env[dict[str, np.ndarray], np.ndarray]):
    """One robosuite task with state observations and `ee_delta` actions in [-1, 1] at 20 Hz.

    Args:
        task: name of a robosuite environment with one arm, e.g. `Lift`, `PickPlace`, `Door`.
        horizon: policy steps until the episode is truncated; there is no termination.
        reward_shaping: robosuite's dense reward; else its sparse one.

    Raises:
        RobosuiteMissing: robosuite is not installed.
        ValueError: unknown task, or one without a single Panda with its own gripper.
    """

    metadata = {"render_modes": []}

    def __init__(self, task: str = "Lift", *, horizon: int = 200, reward_shaping: bool = True) -> None:
        robosuite = import_robosuite()
        one_arm = sorted(name for name in robosuite.ALL_ENVIRONMENTS if not name.startswith("TwoArm"))
        if task not in one_arm:
            raise ValueError(f"no robosuite task {task!r} for one arm; tasks: {', '.join(one_arm)}")
        with undisturbed_process():
            # Things whose size robosuite draws while it builds the model keep that of seed 0; a hard reset would take seconds.
            self._world = robosuite.make(
                task, robots="Panda", reward_shaping=reward_shaping, control_freq=20, ignore_done=True, hard_reset=False, seed=0,
                has_renderer=False, has_offscreen_renderer=False, use_camera_obs=False, use_object_obs=False,
            )  # fmt: skip
        self.task, self.horizon = task, horizon
        self._observer = RobosuiteObserver(self._world.sim.model._model)
        self.contract = _contract(self._observer)
        self.observation_space = gymnasium.spaces.Dict(  # type: ignore[assignment]  # Gymnasium types Dict as a space of spaces
            {c.name: gymnasium.spaces.Box(-np.inf, np.inf, c.shape, np.float32) for c in self.contract.observation}
        )
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (self.contract.action.size,), np.float32)
        self._steps = 0
        self._invalid = "reset() has not been called yet"

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Starts an episode. With a seed, the start is the same in every process; without, the next of the same stream."""
        super().reset(seed=seed)
        if seed is not None:
            # In place: the samplers of robosuite share this one generator.
            self._world.rng.bit_generator.state = np.random.default_rng(seed).bit_generator.state
        with undisturbed_process():
            self._world.reset()
        self._steps = 0
        self._invalid = ""
        return self._observation(), {"success": self._success()}

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """One policy period.

        Args:
            action: (7,) in [-1, 1]; robosuite clips beyond.

        Raises:
            FaultyAction: not finite, or not seven numbers; the episode is invalid from then on. (robosuite itself takes NaN and
                returns finite observations.)
            SimulationFault: the physics diverged; likewise.
            gymnasium.error.ResetNeeded: the episode is invalid, or there is none.
        """
        if self._invalid:
            raise gymnasium.error.ResetNeeded(f"call reset(): {self._invalid}")
        action = np.asarray(action, dtype=np.float64)
        if action.shape != self.action_space.shape or not np.isfinite(action).all():
            self._invalid = f"the action at step {self._steps} was faulty"
            raise FaultyAction(f"ee_delta action: {self.contract.action.size} finite numbers needed, found {action}; reset the environment")
        before = self._world.sim.data.time
        _, reward, _, _ = self._world.step(action)
        # MuJoCo answers a state that is not finite by silently starting anew at time 0.
        if self._world.sim.data.time <= before:
            self._invalid = f"the physics diverged at step {self._steps}"
            raise SimulationFault(f"{self._invalid}; reset the environment")
        self._steps += 1
        return self._observation(), float(reward), False, self._steps >= self.horizon, {"success": self._success()}

    def close(self) -> None:
        """Frees robosuite's world."""
        self._world.close()

    def _success(self) -> bool:
        return bool(self._world._check_success())

    def _observation(self) -> dict[str, np.ndarray]:
        values = self._observer.observe(self._world.sim.data._data)
        return {name: value.astype(np.float32) for name, value in values.items()}


def _contract(observer: RobosuiteObserver) -> RobotContract:
    """The arm's channels and actions are those of this package's Lift; the objects are the model's."""
    lift = world_contract("lift", "ee_delta", "osc_pose")
    channels = [lift.channel(name) for name in ARM_CHANNELS]
    position, orientation = lift.channel("eef_pos"), lift.channel("eef_quat")
    for name in observer.objects:
        channels += [replace(position, name=f"{name}_pos"), replace(orientation, name=f"{name}_quat")]
    if observer.hinges:
        channels.append(Channel(name="object_hinges", names=observer.hinges, unit="rad", rate_hz=position.rate_hz))
    channels += [replace(position, name=f"gripper_to_{name}_pos") for name in observer.objects]
    return replace(lift, observation=tuple(channels))


@contextmanager
def undisturbed_process() -> Iterator[None]:
    """Undoes what robosuite's import, making and resetting do to the process: variables for GL, log handlers, lines on stderr."""
    before = {name: os.environ.get(name) for name in ("MUJOCO_GL", "PYOPENGL_PLATFORM")}
    root = logging.getLogger()
    handlers, level, disabled = list(root.handlers), root.level, logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(disabled)
        root.handlers[:] = handlers
        root.setLevel(level)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
