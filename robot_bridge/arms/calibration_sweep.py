"""Sweep: what the encoders showed while every joint was moved through its range."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_bridge.arms import calibration_file
from robot_bridge.arms.calibration_file import CalibrationError, is_number, is_whole, named
from robot_bridge.arms.servo_model import ServoArmModel, ServoJoint
from sim_envs.servo_bus.tables import TICKS

_HINT = "`armstack calibrate --port PORT --record FILE` keeps a sweep"
_RADIANS = "ticks are expected, these look like radians"


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
        """Writes JSON.

        Raises:
            CalibrationError: it cannot be written.
        """
        calibration_file.write(path, dataclasses.asdict(self))

    @classmethod
    def load(cls, path: Path) -> Sweep:
        """Reads `save`'s file.

        Raises:
            CalibrationError: it cannot be read or a field is missing or wrong.
        """
        data = calibration_file.read(path, _HINT)
        if "joints" in data and "positions" not in data:
            raise CalibrationError(f"{path}: is a calibration, valid: a sweep; {_HINT}")
        missing = [field for field in ("arm", "positions") if field not in data]
        if missing:
            raise CalibrationError(f"{path}: {', '.join(missing)} missing; valid: arm, positions {{joint: [ticks, ...]}}, register_offsets")
        arm, positions, offsets = data["arm"], data["positions"], data.get("register_offsets", {})
        if not isinstance(arm, str):
            raise CalibrationError(f"{path}: arm: {named(arm)}, valid: the name of a model")
        if not isinstance(positions, dict):
            raise CalibrationError(f"{path}: positions: {named(positions)}, valid: {{joint: [ticks, ...]}}")
        ticks = {name: _ticks(f"{path}: positions: {name}", values) for name, values in positions.items()}
        if not isinstance(offsets, dict):
            raise CalibrationError(f"{path}: register_offsets: {named(offsets)}, valid: {{joint: ticks}}")
        if unknown := sorted(set(offsets) - set(ticks)):
            raise CalibrationError(f"{path}: register_offsets: {', '.join(unknown)} without positions, valid: {list(ticks)}")
        for name, offset in offsets.items():
            if not is_whole(offset):
                raise CalibrationError(f"{path}: register_offsets: {name}: {named(offset)}, valid: whole ticks")
        return cls(arm=arm, positions=ticks, register_offsets={name: int(offsets.get(name, 0)) for name in ticks})

    def check(self, model: ServoArmModel) -> None:
        """Raises CalibrationError where it cannot be one of the arm `model`."""
        if self.arm != model.name:
            raise CalibrationError(f"a sweep of {self.arm!r}, valid: one of {model.name!r}")
        if unknown := sorted(set(self.positions) - set(model.names)):
            raise CalibrationError(f"a sweep of unknown joints: {', '.join(unknown)}; valid: {list(model.names)}")
        missing = [name for name in model.names if len(self.positions.get(name, ())) < 2]
        if missing:
            raise CalibrationError(f"no sweep of {missing}; valid: two positions or more of each of {list(model.names)}")
        if angles := [name for name in model.names if _look_like_radians(self.positions[name])]:
            raise CalibrationError(f"{', '.join(angles)} did not move: {_RADIANS}")
        for joint in model.joints:
            _check_ticks(joint, self.positions[joint.name])
            try:
                joint.servo.registers["Homing_Offset"].encode(self.register_offsets.get(joint.name, 0))
            except OverflowError as error:
                raise CalibrationError(f"register_offsets: {joint.name}: {error}") from None


def _ticks(where: str, values: Any) -> list[int]:
    if not isinstance(values, list):
        raise CalibrationError(f"{where}: {named(values)}, valid: a list of ticks")
    wrong = next((i for i, value in enumerate(values) if not is_whole(value)), None)
    if wrong is not None:
        if all(map(is_number, values)) and _look_like_radians(values):
            raise CalibrationError(f"{where} did not move: {_RADIANS}")
        raise CalibrationError(f"{where}: {named(values[wrong])} at {wrong}, valid: whole encoder ticks")
    return [int(value) for value in values]


def _look_like_radians(values: Iterable[float]) -> bool:
    return all(abs(value) <= math.tau for value in values)


def _check_ticks(joint: ServoJoint, ticks: Sequence[int]) -> None:
    """Feetech's encoders show one turn. Dynamixel's count on beyond it, and then cannot jump from one reading to the next."""
    outside = next((i for i, value in enumerate(ticks) if not 0 <= value < TICKS), None)
    if outside is None:
        return
    if joint.servo.protocol == "feetech":
        raise CalibrationError(f"{joint.name}: {ticks[outside]} ticks at {outside}, valid: 0 .. {TICKS - 1}")
    for before, after in zip(ticks[:-1], ticks[1:], strict=True):
        if not abs(after - before) <= TICKS // 2:
            raise CalibrationError(
                f"{joint.name}: from {before} to {after} ticks between two readings, valid: 0 .. {TICKS - 1}, or counted on in steps of "
                f"{TICKS // 2} at most"
            )
