"""Leader: a second servo arm that a person moves by hand and whose joints the arm follows."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

from robot_bridge.arms.base import ArmLost
from robot_bridge.arms.registry import find_arm
from robot_bridge.arms.servo_arm import ServoArm
from robot_bridge.teleop.base import Reading, SourceError, View
from robot_bridge.teleop.settings import JointMap


class Leader:
    """See `TeleopSource`. The driver's torque is off: hold the leader when it is opened.

    The arm's joint goes to scale * leader's joint + offset, rad; the gripper is as far open as the leader's.

    Args:
        driver: of the leader, not connected.
        joints: the arm's joint -> the leader's; empty: those of the same names.
    """

    space: Literal["end_effector", "joint"] = "joint"

    def __init__(self, driver: ServoArm, joints: Mapping[str, JointMap]) -> None:
        own = driver.joint_names[:-1]
        self._driver = driver
        self.joints = dict(joints) or {name: JointMap(joint=name) for name in own}
        wrong = {joint: found.joint for joint, found in self.joints.items() if found.joint not in own}
        if wrong:
            raise SourceError(f"leader: joints {wrong}, valid: joints of the leader, {list(own)}; its gripper leads the gripper by itself")
        self._place = {joint: own.index(found.joint) for joint, found in self.joints.items()}

    def open(self) -> None:
        """Connects and lets go of the arm.

        Raises:
            SourceError: see `ServoArm.connect`.
        """
        try:
            self._driver.connect()
            self._driver.let_go()
        except ArmLost as error:
            self._driver.close()
            raise SourceError(f"leader: {error}") from error

    def read(self, view: View) -> Reading:
        """See `TeleopSource.read`; one sync read.

        Raises:
            SourceError: the bus or a servo does not answer.
        """
        try:
            state = self._driver.read()
        except ArmLost as error:
            raise SourceError(f"leader: {error}") from error
        joints = {
            joint: self.joints[joint].scale * float(state.positions[place]) + self.joints[joint].offset
            for joint, place in self._place.items()
        }
        gripper = self._driver.limits.gripper
        assert gripper is not None  # of every servo arm
        closed = (float(state.positions[-1]) - gripper.open) / (gripper.closed - gripper.open)
        return Reading(joints=joints, gripper=min(max(2 * closed - 1, -1.0), 1.0))

    def close(self) -> None:
        """Closes the port; the leader stays without torque."""
        self._driver.close()


def make_leader(*, arm: str, model: str, port: str, calibration: str, joints: Mapping[str, JointMap]) -> Leader:
    """The leader of `LeaderSettings`.

    Raises:
        SourceError: the model, the calibration or a joint cannot be used.
    """
    module, _, driver = find_arm(arm).driver.partition(":")
    try:
        make = getattr(importlib.import_module(module), driver)
        return Leader(cast(ServoArm, make(model=model, port=port, calibration=Path(calibration))), joints)
    except (ValueError, OSError) as error:
        raise SourceError(f"leader: {error}") from error
