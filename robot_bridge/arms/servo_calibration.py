"""Calibration of an arm made of bus servos: from encoder ticks to rad and back, found from one sweep of every joint."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from robot_bridge.arms import calibration_file
from robot_bridge.arms.calibration_doubts import beyond_model, doubts
from robot_bridge.arms.calibration_file import CalibrationError, named
from robot_bridge.arms.calibration_sweep import Sweep
from robot_bridge.arms.joint_calibration import TICK_RAD, JointCalibration, joint_calibration
from robot_bridge.arms.servo_model import ServoArmModel, ServoJoint
from sim_envs.servo_bus.tables import TICKS

_LOG = logging.getLogger(__name__)
_STILL = 0.17  # rad: a joint that moved less was not swept
_FREE = 0.01  # rad: a model's range less short of a whole turn is that of a joint without stops
_HALF = TICKS // 2 - 1
_GRIPPER_ENDS = 0.15  # share of its way the gripper may be open at the beginning
_HINT = "`armstack calibrate` makes a calibration"


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Of one arm.

    Attributes:
        arm: name of the model.
        joints: in the order of the model's joints.
        warnings: what was doubtful in the sweep, a sentence each.
    """

    arm: str
    joints: Mapping[str, JointCalibration]
    warnings: tuple[str, ...] = ()

    def save(self, path: Path) -> None:
        """Writes JSON.

        Raises:
            CalibrationError: it cannot be written.
        """
        calibration_file.write(path, dataclasses.asdict(self))

    @classmethod
    def load(cls, path: Path, model: ServoArmModel) -> Calibration:
        """Reads `save`'s file; a range beyond the model's is logged.

        Raises:
            CalibrationError: it cannot be read, is of another arm, or a joint is missing, unknown or wrong.
        """
        data = calibration_file.read(path, _HINT)
        if "positions" in data and "joints" not in data:
            raise CalibrationError(
                f"{path}: is a sweep, valid: the calibration that `armstack calibrate --sweep {path} --out FILE` makes of it"
            )
        if missing := [field for field in ("arm", "joints") if field not in data]:
            raise CalibrationError(f"{path}: {', '.join(missing)} missing; valid: arm, joints; {_HINT}")
        if data["arm"] != model.name:
            raise CalibrationError(f"{path}: of {named(data['arm'])}, valid: of {model.name!r}")
        values, warnings = data["joints"], data.get("warnings", [])
        if not isinstance(values, dict):
            raise CalibrationError(f"{path}: joints: {named(values)}, valid: an object with {list(model.names)}")
        if set(values) != set(model.names):
            raise CalibrationError(f"{path}: joints {sorted(values)}, valid: {sorted(model.names)}")
        if not (isinstance(warnings, list) and all(isinstance(warning, str) for warning in warnings)):
            raise CalibrationError(f"{path}: warnings: {named(warnings)}, valid: a list of sentences")
        joints = {joint.name: joint_calibration(f"{path}: joints: {joint.name}", joint, values[joint.name]) for joint in model.joints}
        for joint in model.joints:
            if beyond := beyond_model(joint, joints[joint.name], "rad" if joint is not model.joints[-1] else model.gripper_unit):
                _LOG.warning("%s: %s", path, beyond)
        return cls(arm=model.name, joints=joints, warnings=tuple(warnings))


def calibrate(model: ServoArmModel, sweep: Sweep) -> Calibration:
    """The calibration that a sweep shows.

    Ticks are unwrapped, so that a joint may pass 4095 -> 0. The gripper's sense is that of its way from closed, where every
    sweep begins. Feetech's servos cannot be sent across the wrap, therefore their own Homing_Offset is chosen so that the middle
    of the range shows 2048; Dynamixel's count on beyond a turn and need none. A joint that turns freely gets half a turn either way.

    Raises:
        CalibrationError: a joint was not moved, turned further than its encoder can tell, is missing or unknown, or shows what no
            encoder can; or the gripper was not closed at first.
    """
    sweep.check(model)
    unwrapped = {joint.name: _unwrapped(joint, sweep.positions[joint.name]) for joint in model.joints}
    still = [name for name, ticks in unwrapped.items() if np.ptp(ticks) * TICK_RAD < _STILL]
    if still:
        raise CalibrationError(f"{', '.join(still)} did not move; valid: every joint swept through its whole range")
    further = [name for name, ticks in unwrapped.items() if np.ptp(ticks) >= TICKS]
    if further:
        raise CalibrationError(f"{', '.join(further)} turned by more than a whole turn; valid: less, so that a position has one meaning")
    joints = {
        joint.name: _calibrate(joint, unwrapped[joint.name], sweep.register_offsets.get(joint.name, 0), joint is model.joints[-1])
        for joint in model.joints
    }
    return Calibration(arm=model.name, joints=joints, warnings=doubts(model, joints))


def _unwrapped(joint: ServoJoint, positions: Sequence[int]) -> NDArray[np.float64]:
    ticks = np.unwrap(np.asarray(positions, dtype=np.float64), period=TICKS)
    turns_freely = joint.range_max - joint.range_min > math.tau - _FREE
    return np.clip(ticks, ticks[0] - _HALF, ticks[0] + _HALF) if turns_freely else ticks


def _calibrate(joint: ServoJoint, ticks: NDArray[np.float64], register_offset: int, gripper: bool) -> JointCalibration:
    zero, low, high = float(ticks[0]), float(ticks.min()), float(ticks.max())
    direction, scale = joint.direction, 1.0
    if gripper:
        direction = 1 if high - zero >= zero - low else -1
        way = high - zero if direction > 0 else zero - low
        if (high - low - way) > _GRIPPER_ENDS * way:
            raise CalibrationError(f"{joint.name} was not closed at the beginning of the sweep; valid: closed, then opened all the way")
        scale = joint.range_max / (way * TICK_RAD)
        low, high = sorted((zero, zero + direction * way))
    shift = 0
    if joint.servo.protocol == "feetech":
        shift = round((low + high) / 2) - TICKS // 2
        register_offset = (register_offset + shift + TICKS // 2) % TICKS - TICKS // 2
        # The register holds a sign and 11 bits: -2047 .. 2047.
        if register_offset == -TICKS // 2:
            register_offset, shift = register_offset + 1, shift + 1
    else:
        shift = math.floor(zero / TICKS) * TICKS
    ends = sorted(direction * scale * (end - zero) * TICK_RAD for end in (low, high))
    return JointCalibration(
        id=joint.id,
        model=joint.servo.name,
        homing_offset=(zero - shift) * TICK_RAD,
        direction=direction,
        scale=scale,
        range_min=0.0 if gripper else ends[0],
        range_max=joint.range_max if gripper else ends[1],
        register_offset=register_offset,
    )
