"""`armstack calibrate`: from one sweep of every joint to the calibration file of an arm of bus servos."""

from __future__ import annotations

import os
import select
import sys
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.table import Table

from robot_bridge.arms.calibration_file import CalibrationError
from robot_bridge.arms.calibration_sweep import Sweep
from robot_bridge.arms.servo_calibration import Calibration, calibrate
from robot_bridge.arms.servo_model import ServoArmModel, load_servo_arm
from robot_bridge.arms.servo_sweep import record_sweep, store_offsets
from robot_bridge.commands.output import console
from robot_bridge.output_places import check_file

_POLL_S = 0.02


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Measure where the joints of a servo arm are at zero and how far they go, by moving each by hand.

    Torque is switched off: hold the arm. Bring it into its zero pose, press Enter, move every joint through its whole range, press
    Enter again. The file goes to the driver; Feetech's servos keep a part of it themselves.

    Example: armstack calibrate --arm so101 --port /dev/ttyACM0 --out so101.json
    """

    arm: str
    """so101, so100, koch_v1_1, wx250, vx300s, or a YAML file like theirs."""
    out: Path
    """File to write."""
    port: str | None = None
    """Serial port of the arm."""
    sweep: Path | None = None
    """A recorded sweep instead of a new one; without --port it is only calculated, and nothing is stored in the servos."""
    record: Path | None = None
    """Keep the new sweep in this file."""
    overwrite: bool = False
    """Replace --out and --record where they are there already."""


def _enter_pressed() -> bool:
    if not select.select([sys.stdin], [], [], _POLL_S)[0]:
        return False
    while os.read(sys.stdin.fileno(), 1) not in (b"\n", b""):  # unbuffered, or `select` would miss what was read ahead
        pass
    return True


def _wait_for_enter() -> None:
    while not _enter_pressed():
        pass


def _check(arguments: Arguments) -> None:
    if arguments.port is None and arguments.sweep is None:
        raise CalibrationError("neither --port nor --sweep: valid: an arm to move by hand, or the record of one")
    if arguments.port == "":
        raise CalibrationError("--port '': valid: the serial port of the arm, such as /dev/ttyACM0")
    if arguments.sweep is not None and arguments.record is not None:
        raise CalibrationError("--record with --sweep: nothing new is recorded; valid: one of them")
    for path, option, other in (
        (arguments.out, "--out", arguments.sweep or arguments.record),
        (arguments.record, "--record", None),
    ):
        if path is None:
            continue
        check_file(path, option)
        if other is not None and path.resolve() == other.resolve():
            raise CalibrationError(f"{option} {path}: is the sweep's file, valid: another one")
        if path.exists() and not arguments.overwrite:
            raise CalibrationError(f"{option} {path}: is there already; valid: another file, or --overwrite")


def _calibrated(arguments: Arguments, model: ServoArmModel) -> Calibration:
    if arguments.sweep is not None:
        recorded = Sweep.load(arguments.sweep)
        try:
            return calibrate(model, recorded)
        except CalibrationError as error:
            raise CalibrationError(f"{arguments.sweep}: {error}") from None
    assert arguments.port is not None  # _check

    def hold() -> None:
        console.print(f"{model.description}: torque goes off. Zero pose: {model.zero_pose}. Hold it there and press Enter.")

    def ready() -> None:
        _wait_for_enter()
        console.print("Now move every joint through its whole range, the gripper from closed to open; then press Enter.")

    sweep = record_sweep(arguments.port, model, hold, ready, _enter_pressed)
    if arguments.record is not None:
        sweep.save(arguments.record)
    return calibrate(model, sweep)


def _store(arguments: Arguments, port: str, model: ServoArmModel, calibration: Calibration) -> None:
    try:
        store_offsets(port, model, calibration)
    except CalibrationError as error:
        kept = arguments.sweep or arguments.record
        again = f"--sweep {kept} --overwrite" if kept else "--overwrite"
        raise CalibrationError(
            f"{error}; {arguments.out} is written, but not every servo holds its offset, and the arm will not connect: repeat with {again}"
        ) from None


def _table(calibration: Calibration, model: ServoArmModel) -> Table:
    table = Table("joint", "servo", "from", "to", "unit", "direction")
    for joint in model.joints:
        found = calibration.joints[joint.name]
        unit = model.gripper_unit if joint is model.joints[-1] else "rad"
        table.add_row(
            joint.name, f"{found.id} {found.model}", f"{found.range_min:.3f}", f"{found.range_max:.3f}", unit, f"{found.direction:+d}"
        )
    return table


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack calibrate")
    model = load_servo_arm(arguments.arm)
    _check(arguments)
    calibration = _calibrated(arguments, model)
    calibration.save(arguments.out)  # first: without its file the servos' offsets would fit nothing
    if arguments.port is not None:
        _store(arguments, arguments.port, model, calibration)
    console.print(_table(calibration, model))
    for warning in calibration.warnings:
        console.print(f"warning: {warning}")
    console.print(f"wrote {arguments.out}; now check each joint's sign: docs/reference/servo-arms.md")
    return 0
