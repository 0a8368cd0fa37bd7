"""The numbers in which every arm with a gripper offers its end effector alike: one policy fits arms of other joints and other hands.

Joints do not occur in them. The gripper is called `gripper` and counts as a share of its opening, whatever it is called on the arm and
however far it opens.
"""

from __future__ import annotations

import dataclasses

from rl_core.contract import Channel, Gripper, RobotContract

SHARE = Gripper(name="gripper", open=1.0, closed=0.0, unit="1")
OPENING = Channel(name="gripper_opening", names=(SHARE.name,), unit=SHARE.unit, rate_hz=20.0)
GOAL = (
    Channel(name="goal_pos", names=("x", "y", "z"), unit="m", frame="base"),
    Channel(name="goal_quat", kind="quaternion", frame="base"),
)
"""The condition that a policy node offers: the newest `goal_pose`."""


def any_arm_contract(own: RobotContract) -> RobotContract:
    """What an arm that offers `own`, with end-effector actions and a gripper, offers like every other.

    Raises:
        ValueError: joint actions, or no gripper.
    """
    action = own.action
    if action.space != "end_effector" or action.gripper is None:
        raise ValueError(f"actions in space {action.space!r}, gripper {action.gripper}; valid: end_effector, with a gripper")
    alike = dataclasses.replace(action, names=(*action.names[:-1], SHARE.name), units=(*action.units[:-1], SHARE.unit), gripper=SHARE)
    pose = [own.channel(name) for name in ("eef_pos", "eef_quat")]
    return dataclasses.replace(own, observation=(*pose, OPENING), condition=(), action=alike)


def share_of_opening(position: float, gripper: Gripper) -> float:
    """0 where `gripper` is closed, 1 where it is open."""
    return (position - gripper.closed) / (gripper.open - gripper.closed)
