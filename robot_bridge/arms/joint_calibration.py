"""JointCalibration: from encoder ticks of one joint to its position and back; read from a calibration's file field by field."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from robot_bridge.arms.calibration_file import CalibrationError, is_number, is_whole, named
from robot_bridge.arms.servo_model import ServoJoint
from sim_envs.servo_bus.tables import TICKS

TICK_RAD = math.tau / TICKS
"""rad of one encoder tick."""
_TURN = math.tau + 1e-6
_WHOLE = ("id", "direction", "register_offset")


@dataclass(frozen=True, kw_only=True)
class JointCalibration:
    """One joint. Position = direction * scale * (encoder angle - homing_offset).

    Attributes:
        id: of the servo.
        model: of the servo.
        homing_offset: encoder angle at position 0, rad.
        direction: 1 or -1, sense of the position against that of the encoder.
        scale: units of position per rad of the servo: 1, for the gripper opening / way.
        range_min, range_max: how far it was swept, rad; for the gripper 0 and its opening, rad or m.
        register_offset: what the servo's own Homing_Offset holds, ticks.
    """

    id: int
    model: str
    homing_offset: float
    direction: int
    scale: float
    range_min: float
    range_max: float
    register_offset: int

    def position(self, ticks: float) -> float:
        """Of the joint where the encoder shows `ticks`, whole turns left out."""
        return self.direction * self.scale * (ticks * TICK_RAD - self.homing_offset)

    def ticks(self, position: float) -> int:
        """What the encoder shows at `position`, without whole turns."""
        return round((position / (self.direction * self.scale) + self.homing_offset) / TICK_RAD)

    def turns(self, ticks: float) -> int:
        """Whole turns in `ticks`: those that leave the position nearest to the middle of the range."""
        middle = self.homing_offset / TICK_RAD + self.direction * (self.range_min + self.range_max) / 2 / self.scale / TICK_RAD
        return round((ticks - middle) / TICKS)


def joint_calibration(where: str, joint: ServoJoint, values: Any) -> JointCalibration:
    """The calibration of `joint` in what a file holds at `where`.

    Raises:
        CalibrationError: a field is missing, unknown or cannot be meant; names it alone.
    """
    fields = [field.name for field in dataclasses.fields(JointCalibration)]
    if not isinstance(values, dict):
        raise CalibrationError(f"{where}: {named(values)}, valid: an object with {fields}")
    if missing := [field for field in fields if field not in values]:
        raise CalibrationError(f"{where}: {', '.join(missing)} missing; valid: {fields}")
    if unknown := sorted(set(values) - set(fields)):
        raise CalibrationError(f"{where}: {', '.join(unknown)} unknown; valid: {fields}")
    for field in fields:
        value = values[field]
        if field == "model":
            if not isinstance(value, str):
                raise CalibrationError(f"{where}: model: {named(value)}, valid: {joint.servo.name!r}")
        elif field in _WHOLE:
            if not is_whole(value):
                raise CalibrationError(
                    f"{where}: {field}: {named(value)}, valid: {'1 or -1' if field == 'direction' else 'a whole number'}"
                )
        elif not (is_number(value) and math.isfinite(value)):
            raise CalibrationError(f"{where}: {field}: {named(value)}, valid: a finite number")
    found = JointCalibration(**values | {field: int(values[field]) for field in _WHOLE})
    _check(where, joint, found)
    return found


def _check(where: str, joint: ServoJoint, found: JointCalibration) -> None:
    if (found.id, found.model) != (joint.id, joint.servo.name):
        raise CalibrationError(f"{where} is servo {found.id} {found.model}, valid: {joint.id} {joint.servo.name}")
    if found.direction not in (1, -1):
        raise CalibrationError(f"{where}: direction: {found.direction}, valid: 1 or -1")
    if found.scale <= 0:
        raise CalibrationError(f"{where}: scale: {found.scale}, valid: above 0")
    if abs(found.homing_offset) > _TURN:
        raise CalibrationError(f"{where}: homing_offset: {found.homing_offset}, valid: within one turn, -2 pi .. 2 pi; is it in radians?")
    turn = _TURN * found.scale
    for field, end in (("range_min", found.range_min), ("range_max", found.range_max)):
        if abs(end) > turn:
            raise CalibrationError(f"{where}: {field}: {end}, valid: within one turn of the servo, +-{turn:.4g}; is it in radians?")
    if not 0 < found.range_max - found.range_min <= turn:
        raise CalibrationError(
            f"{where}: range_min {found.range_min}, range_max {found.range_max}, valid: the first below the second, at most one turn "
            f"({turn:.4g}) apart"
        )
    if not max(found.range_min, joint.range_min) < min(found.range_max, joint.range_max):
        raise CalibrationError(
            f"{where} was swept {found.range_min:.2f} .. {found.range_max:.2f}, the model's range is "
            f"{joint.range_min:.2f} .. {joint.range_max:.2f}; valid: ranges that overlap (was the zero pose right?)"
        )
    try:
        joint.servo.registers["Homing_Offset"].encode(found.register_offset)
    except OverflowError as error:
        raise CalibrationError(f"{where}: register_offset: {error}") from None
