"""ArmEnv: an ArmWorld as a Gymnasium environment."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim_envs.arm.observation import GRIPPER, JOINT_STEP, PERIOD_S, ActionKind, world_contract
from sim_envs.arm.scene import Controller
from sim_envs.arm.world import ArmWorld, FaultyAction, SimulationFault
from sim_envs.arm.world_env import WorldEnv

CONTROLLERS: dict[ActionKind, Controller] = {"ee_delta": "osc_pose", "joint_delta": "joint_position"}
"""The controller that executes each kind of action."""


class ArmEnv(WorldEnv):
    """One arm, one task; actions go straight to the world's controller. See `WorldEnv` for episodes, rewards and pictures.

    Args:
        task: a name of `sim_envs.arm.tasks.TASKS`.
        action: `ee_delta` (operational space control) or `joint_delta` (joint servos: measured angles plus the action).
        controller: `osc_pose` or `joint_position`; may be left out, since it follows from `action`.
        horizon: policy steps of an episode; None takes the task's.
        reward_shaping: shaped rewards in [0, 1]; otherwise 1 at success, 0 else.
        render_mode: None or `rgb_array`.
        camera: `front` or `wrist`.
        width: picture width, pixels.
        height: picture height, pixels.

    Raises:
        ValueError: unknown task or render mode, or an action kind that the controller does not execute.
    """

    def __init__(
        self,
        task: str = "lift",
        *,
        action: ActionKind = "ee_delta",
        controller: Controller | None = None,
        horizon: int | None = None,
        reward_shaping: bool = True,
        render_mode: str | None = None,
        camera: str = "front",
        width: int = 256,
        height: int = 256,
    ) -> None:
        if controller not in (None, CONTROLLERS.get(action)):
            raise ValueError(f"controller {controller!r} executes no {action!r} actions; valid: {CONTROLLERS}")
        contract = world_contract(task, action, CONTROLLERS.get(action, "joint_position"))
        super().__init__(
            ArmWorld(task, controller=CONTROLLERS[action]),
            contract,
            horizon=horizon,
            reward_shaping=reward_shaping,
            render_mode=render_mode,
            camera=camera,
            width=width,
            height=height,
        )
        self._substeps = round(PERIOD_S / self.world.model.opt.timestep)

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """One policy period. Actions beyond [-1, 1] are clipped, as in robosuite.

        Raises:
            FaultyAction: the action is not finite numbers of the right shape. The episode is invalid from here on.
            SimulationFault: the physics diverged; likewise.
            gymnasium.error.ResetNeeded: the episode is invalid, or there is none.
        """
        self._require_valid()
        try:
            self._command(np.asarray(action, dtype=np.float64))
            self.world.advance(self._substeps)
        except (FaultyAction, SimulationFault) as fault:
            self._invalidate(fault)
            raise
        return self._finish_step({})

    def _command(self, action: np.ndarray) -> None:
        if self.world.controller == "osc_pose":
            self.world.set_pose_delta(action)
            return
        if action.shape != self.action_space.shape or not np.isfinite(action).all():
            raise FaultyAction(f"joint_delta action: {self.contract.action.size} finite numbers needed, found {action}")
        action = np.clip(action, -1.0, 1.0)
        measured = self.world.data.qpos[:7]
        opening = GRIPPER.open + (action[-1] + 1) / 2 * (GRIPPER.closed - GRIPPER.open)
        self.world.set_joint_target(measured + JOINT_STEP * action[:-1], opening)
