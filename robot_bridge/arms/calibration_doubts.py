"""What is doubtful in a calibration that can be used: a sweep that was too short, went too far, or began in another pose."""

from __future__ import annotations

import math

from robot_bridge.arms.joint_calibration import JointCalibration
from robot_bridge.arms.servo_model import ServoArmModel, ServoJoint

_SWEPT = 0.8  # share of the model's range that a sweep should have
_END = 0.1  # share of the swept range: a zero pose this near to an end lies at it
_MIDDLE = (0.25, 0.75)  # a model's zero between these shares of its range lies in the middle
_BEYOND = 0.1  # share of the model's range that a copy of the arm may go further
_STRETCHED = 1.3  # a gripper's way may differ from the model's by this


def doubts(model: ServoArmModel, found: dict[str, JointCalibration]) -> tuple[str, ...]:
    """One sentence each, with the joint, what was found and the model's."""
    said = [sentence for joint in model.joints[:-1] for sentence in _of_joint(joint, found[joint.name])]
    return (*said, *_of_gripper(model, found[model.names[-1]]))


def beyond_model(joint: ServoJoint, found: JointCalibration, unit: str) -> str | None:
    """A range that goes further than the joint can, if it does: the zero pose was another one, or the file is of another arm."""
    margin = _BEYOND * (joint.range_max - joint.range_min)
    if found.range_min >= joint.range_min - margin and found.range_max <= joint.range_max + margin:
        return None
    return f"{joint.name}: {_ranges(joint, found, unit)}, which it goes beyond; was the zero pose right?"


def _ranges(joint: ServoJoint, found: JointCalibration, unit: str = "rad") -> str:
    digits = 2 if unit == "rad" else 3
    swept, model = (f"{ends.range_min:.{digits}f} .. {ends.range_max:.{digits}f} {unit}" for ends in (found, joint))
    return f"swept {swept}, the model's range is {model}"


def _of_joint(joint: ServoJoint, found: JointCalibration) -> list[str]:
    swept, whole = found.range_max - found.range_min, joint.range_max - joint.range_min
    said = []
    if swept < _SWEPT * whole:
        said.append(f"{joint.name}: {_ranges(joint, found)}, {swept / whole:.0%} of it was swept; the arm will not leave the swept range")
    zero = -found.range_min / swept
    if _MIDDLE[0] <= -joint.range_min / whole <= _MIDDLE[1] and not _END <= zero <= 1 - _END:
        said.append(f"{joint.name}: {_ranges(joint, found)}, the zero pose was at an end of the sweep; was the zero pose right?")
    if beyond := beyond_model(joint, found, "rad"):
        said.append(beyond)
    return said


def _of_gripper(model: ServoArmModel, found: JointCalibration) -> list[str]:
    """Only where the opening is an angle: nobody says how far the servo turns for one in metres."""
    if model.gripper_unit != "rad" or abs(math.log(found.scale)) <= math.log(_STRETCHED):
        return []
    gripper = model.joints[-1]
    return [
        f"{gripper.name}: its servo was moved by {gripper.range_max / found.scale:.2f} rad, the model's opening is {gripper.range_max:.2f} "
        f"rad: positions are stretched by {found.scale:.2f}; was it closed, then opened all the way?"
    ]
