"""FilteredEnv: an arm world behind the same decoding, inverse kinematics, command filter and control loop as over ROS."""

from __future__ import annotations

from typing import Any

import numpy as np

from robot_bridge.arms.base import ArmLost
from robot_bridge.arms.simulated import SimulatedArm
from robot_bridge.control.decode import ActionDecoder, ActionError
from robot_bridge.control.filter import CommandFilter
from robot_bridge.control.kinematics import IKError, Kinematics
from robot_bridge.control.loop import ControlLoop
from robot_bridge.control.settings import FilterSettings
from sim_envs.arm.observation import PERIOD_S, ActionKind, world_contract
from sim_envs.arm.world import ArmWorld, FaultyAction
from sim_envs.arm.world_env import WorldEnv

SENDER = "in-process"


class FilteredEnv(WorldEnv):
    """One arm in a `joint_position` world, 20 policy steps a simulated second.

    `info` of a step holds `success`; `action_applied`, what the filter let through in the action's numbers (equal to the action
    where nothing was cut or refused); and `refusal`, why the command was not taken (empty when it was).

    Args:
        task: a name of `sim_envs.arm.tasks.TASKS`.
        action: `ee_delta` or `joint_delta`.
        horizon: policy steps of an episode; None takes the task's.
        reward_shaping: shaped rewards in [0, 1]; otherwise 1 at success, 0 else.
        render_mode: None or `rgb_array`.
        camera: `front` or `wrist`.
        width: picture width, pixels.
        height: picture height, pixels.

    Attributes:
        contract: what the world offers.
        decoder: from actions to joint positions; counts what it clipped.
        loop: the control loop; its filter counts what it refused and limited.

    Raises:
        ValueError: unknown task, action kind or render mode.
    """

    def __init__(
        self,
        task: str = "lift",
        *,
        action: ActionKind = "ee_delta",
        horizon: int | None = None,
        reward_shaping: bool = True,
        render_mode: str | None = None,
        camera: str = "front",
        width: int = 256,
        height: int = 256,
    ) -> None:
        super().__init__(
            ArmWorld(task, controller="joint_position", visual=render_mode is not None),
            world_contract(task, action),
            horizon=horizon,
            reward_shaping=reward_shaping,
            render_mode=render_mode,
            camera=camera,
            width=width,
            height=height,
        )
        self.arm = SimulatedArm(self.world)
        kinematics = Kinematics(self.world.kinematics_xml())
        self.decoder = ActionDecoder(self.contract.action, kinematics)
        settings = FilterSettings(policy_period_s=PERIOD_S)
        self.loop = ControlLoop(arm=self.arm, filter=CommandFilter(self.arm.limits, settings, forward=kinematics.fk), clock=self.arm.clock)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Starts an episode; with a seed, exactly `ArmWorld.reset(seed)`'s."""
        first = super().reset(seed=seed, options=options)
        self.loop.restart()
        self.loop.take("policy", SENDER)
        return first

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """One policy period. Actions beyond [-1, 1] are clipped and counted in `decoder.clipped`.

        A pose that no joint positions reach is no error: nothing new is sent, and the arm holds once the last command has aged.

        Raises:
            FaultyAction: the action is not finite numbers of the right shape. The episode is invalid from here on.
            ArmLost: the physics diverged; likewise.
            gymnasium.error.ResetNeeded: the episode is invalid, or there is none.
        """
        self._require_valid()
        action = np.asarray(action, dtype=np.float64)
        measured = self.arm.read()
        command, refused = None, ""
        try:
            command = self.decoder.command(action[None], measured, stamp_ns=measured.stamp_ns, source="policy", sender=SENDER)
        except IKError as error:
            refused = str(error)
        except ActionError as fault:
            self._invalidate(fault)
            raise FaultyAction(str(fault)) from fault
        try:
            refusal, periods = self.loop.lockstep_step(command)
        except ArmLost as fault:
            self._invalidate(fault)
            raise
        target = periods[0].output.target
        as_asked = command is not None and np.array_equal(target, command.positions[0])
        applied = np.clip(action, -1.0, 1.0) if as_asked else self.decoder.encode(target, measured)
        return self._finish_step(
            {
                "action_applied": applied.astype(np.float32),
                "refusal": f"{refusal.reason}: {refusal.detail}" if refusal else refused,
            }
        )
