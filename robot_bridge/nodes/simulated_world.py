"""The world behind a simulated arm node: one lock around the physics, and the episodes that are played in it."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_bridge.arms.base import ArmState
from robot_bridge.arms.simulated import SimulatedArm
from robot_bridge.control.any_arm import any_arm_contract
from robot_bridge.control.clock import Clock
from robot_bridge.control.settings import FilterSettings
from robot_bridge.nodes.episode_requests import End, ended
from robot_bridge.nodes.json_requests import RequestError
from sim_envs.arm.observation import ActionKind, targets, world_contract
from sim_envs.arm.push import Push
from sim_envs.arm.tasks import find_task
from sim_envs.arm.world import ArmWorld

ACTIONS: tuple[ActionKind, ...] = ("ee_delta", "joint_delta")
_KEPT = 1000


class WorldArm(SimulatedArm):
    """The arm of a world that another thread may reset and look at. A period that passed counts as a step of the episode.

    Args:
        task: task of the world.
        settings: periods of the command filter.
        stamps: clock of the stamps; None stamps with simulated time (lockstep).
        horizon: policy steps of an episode; 0 takes the task's.

    Attributes:
        rewards: (stamp of the step's end in nanoseconds, reward) of the policy steps that nobody has taken out yet.
        forces: likewise (stamp in nanoseconds, force (3,) in N, frame base) of the periods in which something pushed, and 0 after it.
    """

    def __init__(self, task: str, settings: FilterSettings, *, stamps: Clock | None = None, horizon: int = 0) -> None:
        super().__init__(ArmWorld(task, controller="joint_position"))
        self.task = task
        self.horizon = horizon or find_task(task).horizon
        own = tuple(world_contract(task, action) for action in ACTIONS)
        self.contracts = (*own, any_arm_contract(own[0]))
        self.description = self.world.kinematics_xml()
        self.objects = self._placed()
        self.object_names = tuple(self.objects)
        self.rewards: deque[tuple[int, float]] = deque(maxlen=_KEPT)
        self.forces: deque[tuple[int, NDArray[np.float64]]] = deque(maxlen=_KEPT)
        self._push: tuple[Push, int] | None = None  # with the period of the episode in which it begins
        self._ticks_a_step = round(settings.policy_period_s / settings.control_period_s)
        self._period_s = settings.control_period_s
        self._settle_s = 2 * settings.control_period_s
        self._stamps = stamps
        self._lock = threading.RLock()
        self._paused = False
        self._ticks = 0
        self.episode: dict[str, Any] = {"index": -1, "seed": 0, "task": task, "phase": "over", "success": False, "return": 0.0, "steps": 0}

    def read(self) -> ArmState:
        """See `Arm.read`; the objects' poses of the same instant are kept in `objects`."""
        with self._lock:
            state = super().read()
            self.objects = self._placed()
        if self._stamps is None:
            return state
        return ArmState(
            stamp_ns=self._stamps.source_ns(),
            names=state.names,
            positions=state.positions,
            velocities=state.velocities,
            ee_pos=state.ee_pos,
            ee_quat=state.ee_quat,
        )

    def _placed(self) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Objects, goals, and where a task with goals of hand and object wants them, without a heading; position and quaternion of each."""
        reading = self.world.state()
        return reading.objects | {name: (at, np.array([0.0, 0.0, 0.0, 1.0])) for name, at in targets(reading, self.task).items()}

    def command(self, positions: NDArray[np.float64], period_s: float) -> None:
        """See `Arm.command`; while a reset is under way nothing moves."""
        with self._lock:
            if self._paused:
                return
            if self._push is not None:
                self._apply(*self._push)
            super().command(positions, period_s)
            self._ticks += 1
            if self._ticks % self._ticks_a_step == 0:
                self._count_step()

    def disturb(self, push: Push, at_s: float | None) -> float:
        """Something pushes the arm, `at_s` seconds of its time after the episode began (None: now); returns when.

        Raises:
            RequestError: that is past, or another push is not over yet.
        """
        with self._lock:
            begin = self._ticks if at_s is None else round(at_s / self._period_s)
            if begin < self._ticks:
                raise RequestError(f"at_s {at_s}, valid: {self._ticks * self._period_s:g} or more, where the episode is now")
            if self._push is not None:
                raise RequestError(f"another push begins at {self._push[1] * self._period_s:g} s and is not over yet; valid: one at a time")
            self._push = push, begin
            return begin * self._period_s

    def _apply(self, push: Push, begin: int) -> None:
        elapsed_s = (self._ticks - begin) * self._period_s
        if elapsed_s < 0:
            return
        force = np.zeros(3)
        if elapsed_s < push.duration_s - 1e-9:
            force = push.at(elapsed_s, self.world.state().eef_pos)
        else:
            self._push = None
        self.world.push(force)
        self.forces.append(((self._stamps or self.clock).source_ns(), force))

    def _count_step(self) -> None:
        episode = self.episode
        if episode["phase"] != "running":
            return
        steps, reward = episode["steps"] + 1, float(self.world.reward())
        self.rewards.append(((self._stamps or self.clock).source_ns(), reward))
        self.episode = {
            **episode,
            "steps": steps,
            "success": bool(episode["success"] or self.world.success()),
            "return": episode["return"] + reward,
            "phase": "over" if steps >= self.horizon else "running",
        }

    def begin_episode(self, seed: int, restart: Any, *, start: bool = False) -> ArmState:
        """Resets the world and begins the next episode.

        Args:
            seed: of the world.
            restart: `ControlLoop.restart`; called while nothing moves.
            start: an operator asked for it and the arm may move: said in `episode`, for a policy that waits for a start.
        """
        with self._lock:
            self._paused = True
            self.world.reset(seed)
            self._push = None
        state: ArmState = restart()
        if self._stamps is not None:
            time.sleep(self._settle_s)  # what the loop had sent before the restart is taken and dropped meanwhile
        with self._lock:
            self._ticks = 0
            self._paused = False
            index = self.episode["index"] + 1
            self.episode = {
                "index": index, "seed": seed, "task": self.task, "phase": "running", "success": False, "return": 0.0, "steps": 0,
                "stamp_ns": state.stamp_ns, "start": start,
            }  # fmt: skip
        return state

    def end_episode(self, end: End) -> None:
        """An operator says that the episode is over; what he says of its success counts. The world goes on until the next reset."""
        with self._lock:
            self.episode = ended(self.episode, end)

    def qpos(self) -> NDArray[np.float64]:
        """MuJoCo's positions, for rendering elsewhere."""
        with self._lock:
            return self.world.qpos()
