"""GoalInput: the newest `goal_pose`, which is the condition of a policy that asks for one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from geometry_msgs.msg import PoseStamped
from numpy.typing import NDArray

from rl_core.contract import Channel, RobotContract
from robot_bridge.control.any_arm import GOAL as POSE
from robot_bridge.control.limits import ArmLimits
from robot_bridge.nodes.messages import MessageError, pose_arrays

TOPIC = "goal_pose"
GOAL = (*POSE, Channel(name="goal_eef_pos", names=("x", "y", "z"), unit="m", frame="base"))
"""What a policy may be told of it: the pose, or its position alone as where the observation channel `eef_pos` is to be (DVFB)."""


class GoalInput:
    """Where the arm shall go, as its user last said it. A goal that cannot be meant also ends the one before: the user wanted another.

    Args:
        need: contract of the policy.
        limits: of the arm; a goal outside its workspace box is refused.
        frame: of the arm's base, the only one a goal may be given in.

    Attributes:
        needed: whether the policy asks for a goal.
        value: channel -> numbers of the goal in force, a new object with each goal; None where there is none.
        missing: why there is none; empty where there is one, or none is needed.
    """

    def __init__(self, need: RobotContract, limits: ArmLimits, frame: str) -> None:
        self.needed = {channel.name for channel in need.condition} & {channel.name for channel in GOAL} != set()
        self.value: Mapping[str, NDArray[np.float64]] | None = None
        self.missing = f"{TOPIC}: nothing received; publish a PoseStamped in frame {frame!r}" if self.needed else ""
        self._frame = frame
        self._low, self._high = np.array(limits.workspace_min), np.array(limits.workspace_max)

    def receive(self, message: PoseStamped) -> None:
        """Takes a goal.

        Raises:
            MessageError: another frame, not finite, a quaternion whose norm is not 1, or a position outside the arm's workspace.
        """
        self.value = None
        try:
            position, quaternion = self._checked(message)
        except MessageError as error:
            self.missing = f"the last goal was refused: {error}"
            raise
        told = (position, quaternion, position)
        self.value, self.missing = {channel.name: values for channel, values in zip(GOAL, told, strict=True)}, ""

    def refuse(self, value: Mapping[str, NDArray[np.float64]], reason: str) -> None:
        """The policy cannot go to the goal `value`; nothing where another has come since."""
        if self.value is value:
            self.value, self.missing = None, f"the last goal was refused: {TOPIC}: {reason}"

    def _checked(self, message: PoseStamped) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if message.header.frame_id != self._frame:
            raise MessageError(f"{TOPIC}: frame {message.header.frame_id!r}, valid: {self._frame!r}")
        position, quaternion = pose_arrays(message, what=TOPIC)
        if ((position < self._low) | (position > self._high)).any():
            box = f"{self._low.tolist()} .. {self._high.tolist()}"
            raise MessageError(f"{TOPIC}: position {position.round(4).tolist()}, valid: inside the arm's workspace {box} m")
        return position, quaternion
