"""The kitchen's hand: moved in straight lines, by inverse kinematics with mink, through the environment's velocity actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import mink
import mujoco
import numpy as np
from numpy.typing import NDArray

from sim_envs.kitchen.kitchen import ARM_JOINTS, STEP_S, VELOCITY, Kitchen

Vector = NDArray[np.float64]
Pose = tuple[Vector, Vector]
"""Position (3,), metres in the kitchen's frame, and rotation (3, 3), of the site `end_effector`, 5 cm behind the fingertips."""
SITE = "end_effector"
SPEED, TURN = 0.03, 0.12
"""Of the commanded pose, metres and rad a step."""
_JOINT_STEP = np.array([0.07] * 4 + [0.09] * 3)
"""What the joints can follow in a step, rad; it also keeps them from spinning where the arm is singular."""
_ARRIVED = 0.012
_PATIENCE = 8
"""Steps that are waited, at most, until the hand is within `_ARRIVED` metres of a way-point."""
_STIFFNESS = np.array([870.0] * 4 + [120.0] * 3)
"""Of the environment's position servos, Nm/rad. They hold no arm up: what bears on a joint is added to its command."""
_LEAD = 2.0
"""Its servos cover half of a step's way in a step."""


class Hand:
    """Drives a kitchen's arm; yields actions (9,) float32, each to be made before the next is asked for.

    Args:
        kitchen: whose arm it is.
        speed: share of `SPEED` and `TURN`.
    """

    def __init__(self, kitchen: Kitchen, speed: float = 1.0) -> None:
        self._kitchen, self._speed = kitchen, speed
        self._arm = _arm_model()
        names = [self._arm.joint(joint).name for joint in range(ARM_JOINTS)]
        self._limits = [
            mink.ConfigurationLimit(self._arm, gain=1.0),
            mink.VelocityLimit(self._arm, dict(zip(names, _JOINT_STEP, strict=True))),
        ]
        self._configuration = mink.Configuration(self._arm)
        self._pose = mink.FrameTask(frame_name=SITE, frame_type="site", position_cost=1.0, orientation_cost=0.3)
        self._posture = mink.PostureTask(self._arm, cost=1e-3)
        self._joints = self._within(kitchen.data.qpos[: self._arm.nq])
        self._posture.set_target(self._joints)
        self.position, self.rotation = self.site(SITE), kitchen.data.site(SITE).xmat.reshape(3, 3).copy()

    def site(self, name: str) -> Vector:
        """(3,) metres, where a site is now."""
        return self._kitchen.data.site(name).xpos.copy()

    def body(self, name: str) -> Vector:
        """(3,) metres, where a body is now."""
        return self._kitchen.data.body(name).xpos.copy()

    def go(self, pose: Pose, opening: float, speed: float = 1.0) -> Iterator[NDArray[np.float32]]:
        """In a straight line to a pose, and waits a little until the hand is there.

        Args:
            pose: where to.
            opening: of each finger, metres.
            speed: share of the hand's speed.
        """
        start, goal = self.position, pose[0]
        first, last = mink.SO3.from_matrix(self.rotation), mink.SO3.from_matrix(pose[1])
        turn = (first.inverse() @ last).log()
        speed *= self._speed
        steps = max(1, int(np.ceil(max(np.linalg.norm(goal - start) / SPEED, np.linalg.norm(turn) / TURN) / speed)))
        for step in range(1, steps + 1):
            self.position = start + (goal - start) * (step / steps)
            self.rotation = (first @ mink.SO3.exp(turn * (step / steps))).as_matrix()
            yield self._action(opening)
        for _ in range(_PATIENCE):
            if np.linalg.norm(self.site(SITE) - goal) < _ARRIVED:
                break
            yield self._action(opening)

    def hold(self, opening: float, steps: int) -> Iterator[NDArray[np.float32]]:
        """Stays for some steps while the fingers move."""
        for _ in range(steps):
            yield self._action(opening)

    def _action(self, opening: float) -> NDArray[np.float32]:
        """Towards the commanded pose: one step of inverse kinematics from the commanded joints, and what brings the measured ones there."""
        self._configuration.update(self._joints)
        self._pose.set_target(mink.SE3.from_rotation_and_translation(mink.SO3.from_matrix(self.rotation), self.position))
        change = mink.solve_ik(
            self._configuration, [self._pose, self._posture], 1.0, "quadprog", damping=1e-3, safety_break=False, limits=self._limits
        )
        self._joints = self._within(self._configuration.integrate(change, 1.0))
        measured, load = self._kitchen.data.qpos[: self._arm.nq], self._kitchen.data.qfrc_bias[:ARM_JOINTS]
        lead = _LEAD * (self._joints[:ARM_JOINTS] - measured[:ARM_JOINTS]) + load / _STIFFNESS
        way = np.concatenate([lead, opening - measured[ARM_JOINTS:]])
        return np.clip(way / (VELOCITY * STEP_S), -1.0, 1.0).astype(np.float32)

    def _within(self, joints: Vector) -> Vector:
        return np.clip(joints, *self._arm.jnt_range.T)


def pointing(direction: Sequence[float], opening: Sequence[float]) -> Vector:
    """Rotation (3, 3) of a hand that points along `direction` and whose fingers open along `opening`, at right angles to it."""
    ahead, across = np.array(direction, float), np.array(opening, float)
    return np.stack([np.cross(across, ahead), across, ahead], axis=1)


@cache
def _arm_model() -> mujoco.MjModel:
    """The kitchen's arm alone, from the environment's own files."""
    from gymnasium_robotics.envs.franka_kitchen import franka_env

    files = Path(franka_env.__file__).parents[1] / "assets" / "kitchen_franka" / "franka_assets"
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco>
          <include file="{files}/assets.xml"/>
          <worldbody><body pos="0 0 1.8" euler="0 0 1.57"><include file="{files}/chain.xml"/></body></worldbody>
          <compiler angle="radian" meshdir="{files}/meshes"/>
        </mujoco>"""
    )
    model.jnt_range[5, 0] = 0.0  # the environment lets no command of this joint below
    return model
