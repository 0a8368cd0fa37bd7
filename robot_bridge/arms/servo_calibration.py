"""Calibration of an arm made of bus servos: from encoder ticks to rad and back, found from one sweep of every joint."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rl_core.data.atomic import write_atomically
from rl_core.errors import ArmstackError
from robot_bridge.arms.servo_model import ServoArmModel, ServoJoint
from sim_envs.servo_bus.tables import TICKS

_RAD = math.tau / TICKS
_STILL = 0.17  # rad: a joint that moved less was not swept
_FREE = 0.01  # rad: a model's range less short of a whole turn is that of a joint without stops
_HALF = TICKS // 2 - 1
_GRIPPER_ENDS = 0.15  # share of its way the gripper may be open at the beginning


class CalibrationError(ArmstackError):
    """A sweep or a calibration that cannot be used; names the file, the joint, what was found and what is valid."""


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
        return self.direction * self.scale * (ticks * _RAD - self.homing_offset)

    def ticks(self, position: float) -> int:
        """What the encoder shows at `position`, without whole turns."""
        return round((position / (self.direction * self.scale) + self.homing_offset) / _RAD)

    def turns(self, ticks: float) -> int:
        """Whole turns in `ticks`: those that leave the position nearest to the middle of the range."""
        middle = self.homing_offset / _RAD + self.direction * (self.range_min + self.range_max) / 2 / self.scale / _RAD
        return round((ticks - middle) / TICKS)


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Encoder ticks of every joint while each was moved through its whole range; the first sample is the zero pose.

    Attributes:
        arm: name of the model.
        positions: joint -> (T,) ticks as read.
        register_offsets: joint -> the servo's own Homing_Offset while they were read, ticks.
    """

    arm: str
    positions: Mapping[str, Sequence[int]]
    register_offsets: Mapping[str, int]

    def save(self, path: Path) -> None:
        """Writes JSON."""
        _write(path, dataclasses.asdict(self))

    @classmethod
    def load(cls, path: Path) -> Sweep:
        """Reads `save`'s file.

        Raises:
            CalibrationError: it cannot be read or a field is missing or wrong.
        """
        data = _read(path)
        try:
            positions = {str(name): [int(ticks) for ticks in values] for name, values in data["positions"].items()}
            offsets = {name: int(data.get("register_offsets", {}).get(name, 0)) for name in positions}
            return cls(arm=str(data["arm"]), positions=positions, register_offsets=offsets)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CalibrationError(f"{path}: {type(error).__name__}: {error}; valid: arm, positions {{joint: [ticks, ...]}}") from None


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Of one arm; `joints` in the order of the model's joints."""

    arm: str
    joints: Mapping[str, JointCalibration]

    def save(self, path: Path) -> None:
        """Writes JSON."""
        _write(path, dataclasses.asdict(self))

    @classmethod
    def load(cls, path: Path, model: ServoArmModel) -> Calibration:
        """Reads `save`'s file.

        Raises:
            CalibrationError: it cannot be read, is of another arm, or a joint is missing, unknown or wrong.
        """
        data = _read(path)
        try:
            joints = {name: JointCalibration(**values) for name, values in data["joints"].items()}
            calibration = cls(arm=data["arm"], joints=joints)
        except (KeyError, TypeError, AttributeError) as error:
            fields = [field.name for field in dataclasses.fields(JointCalibration)]
            raise CalibrationError(f"{path}: {type(error).__name__}: {error}; valid: arm, joints with {fields}") from None
        _check(path, calibration, model)
        return cls(arm=calibration.arm, joints={name: joints[name] for name in model.names})


def calibrate(model: ServoArmModel, sweep: Sweep) -> Calibration:
    """The calibration that a sweep shows.

    Ticks are unwrapped, so that a joint may pass 4095 -> 0. The gripper's sense is that of its way from closed, where every
    sweep begins. Feetech's servos cannot be sent across the wrap, therefore their own Homing_Offset is chosen so that the middle
    of the range shows 2048; Dynamixel's count on beyond a turn and need none. A joint that turns freely gets half a turn either way.

    Raises:
        CalibrationError: a joint was not moved, turned further than its encoder can tell, or is missing, or the gripper was not
            closed at first.
    """
    if sweep.arm != model.name:
        raise CalibrationError(f"a sweep of {sweep.arm!r}, valid: one of {model.name!r}")
    missing = [name for name in model.names if len(sweep.positions.get(name, ())) < 2]
    if missing:
        raise CalibrationError(f"no sweep of {missing}; valid: two positions or more of each of {list(model.names)}")
    unwrapped = {joint.name: _unwrapped(joint, sweep.positions[joint.name]) for joint in model.joints}
    still = [name for name, ticks in unwrapped.items() if np.ptp(ticks) * _RAD < _STILL]
    if still:
        raise CalibrationError(f"{', '.join(still)} did not move; valid: every joint swept through its whole range")
    further = [name for name, ticks in unwrapped.items() if np.ptp(ticks) >= TICKS]
    if further:
        raise CalibrationError(f"{', '.join(further)} turned by more than a whole turn; valid: less, so that a position has one meaning")
    return Calibration(
        arm=model.name,
        joints={
            joint.name: _calibrate(joint, unwrapped[joint.name], sweep.register_offsets.get(joint.name, 0), joint is model.joints[-1])
            for joint in model.joints
        },
    )


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
        scale = joint.range_max / (way * _RAD)
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
    ends = sorted(direction * scale * (end - zero) * _RAD for end in (low, high))
    return JointCalibration(
        id=joint.id,
        model=joint.servo.name,
        homing_offset=(zero - shift) * _RAD,
        direction=direction,
        scale=scale,
        range_min=0.0 if gripper else ends[0],
        range_max=joint.range_max if gripper else ends[1],
        register_offset=register_offset,
    )


def _check(path: Path, calibration: Calibration, model: ServoArmModel) -> None:
    if calibration.arm != model.name:
        raise CalibrationError(f"{path}: of {calibration.arm!r}, valid: of {model.name!r}")
    if set(calibration.joints) != set(model.names):
        raise CalibrationError(f"{path}: joints {sorted(calibration.joints)}, valid: {sorted(model.names)}")
    for joint in model.joints:
        found = calibration.joints[joint.name]
        if (found.id, found.model) != (joint.id, joint.servo.name):
            raise CalibrationError(f"{path}: {joint.name} is servo {found.id} {found.model}, valid: {joint.id} {joint.servo.name}")
        numbers = (found.homing_offset, found.scale, found.range_min, found.range_max, found.register_offset)
        if not all(isinstance(n, int | float) and math.isfinite(n) for n in numbers) or found.direction not in (1, -1) or found.scale <= 0:
            raise CalibrationError(f"{path}: {joint.name}: {found}; valid: finite numbers, direction 1 or -1, scale above 0")
        if not max(found.range_min, joint.range_min) < min(found.range_max, joint.range_max):
            raise CalibrationError(
                f"{path}: {joint.name} was swept {found.range_min:.2f} .. {found.range_max:.2f}, the model's range is "
                f"{joint.range_min:.2f} .. {joint.range_max:.2f}; valid: ranges that overlap (was the zero pose right?)"
            )


def _read(path: Path) -> dict:
    try:
        data = json.loads(path.read_text())
    except FileNotFoundError:
        raise CalibrationError(f"{path}: no such file; `armstack calibrate` makes a calibration") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CalibrationError(f"{path}: not JSON: {error}") from None
    if not isinstance(data, dict):
        raise CalibrationError(f"{path}: {type(data).__name__}, valid: a JSON object")
    return data


def _write(path: Path, data: dict) -> None:
    with write_atomically(path) as file:
        file.write((json.dumps(data, indent=1) + "\n").encode())
