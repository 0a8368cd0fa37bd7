"""`armstack calibrate` with a recorded sweep and with an emulated arm."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path
from typing import NoReturn

import pytest

from robot_bridge.arms import calibration_file
from robot_bridge.arms.calibration_file import CalibrationError
from robot_bridge.arms.calibration_sweep import Sweep
from robot_bridge.arms.servo_calibration import Calibration, calibrate
from robot_bridge.arms.servo_model import load_servo_arm
from robot_bridge.arms.servo_sweep import record_sweep
from sim_envs.servo_bus.bus import EmulatedBus
from sim_envs.servo_bus.servo import Servo
from tests.robot_bridge.arms.servo_bench import Bench, sweep, way, zeros
from tests.robot_bridge.command_line import Cli


def new_arm(folder: Path, name: str) -> EmulatedBus:
    """Servos as they come, mounted anywhere, standing at the arm's zero."""
    model = load_servo_arm(name)
    bus = EmulatedBus(model.servos, folder / "ttyACM0")
    for joint in model.joints:
        bus.servos[joint.id].turn_by_hand(zeros(model)[joint.name] - 2048)
    return bus


@pytest.mark.parametrize(("name", "wraps"), [("so101", True), ("so101", False), ("koch_v1_1", False)])
def test_an_arm_moved_by_hand_is_calibrated_across_the_wrap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, wraps: bool
) -> None:
    """Also where a servo shows more than the turn it should."""
    monkeypatch.setattr(Servo, "_wraps", property(lambda servo: wraps))
    model = load_servo_arm(name)
    paths = {joint.name: way(model, joint.name) for joint in model.joints}
    step = 0

    def done() -> bool:
        nonlocal step
        with bus.lock:
            for joint in model.joints:
                servo, path = bus.servos[joint.id], paths[joint.name]
                servo.turn_by_hand(zeros(model)[joint.name] + path[min(step, len(path) - 1)] - servo.shaft)
        step += 1
        return step > max(map(len, paths.values()))

    with new_arm(tmp_path, name) as bus:
        for servo in bus.servos.values():
            servo.set("Torque_Enable", 1)
        recorded = record_sweep(bus.port, model, lambda: None, lambda: None, done)
        assert not any(servo.get("Torque_Enable") for servo in bus.servos.values())
    assert calibrate(model, recorded) == calibrate(model, sweep(model))


def test_a_recorded_sweep_becomes_a_calibration_with_which_the_arm_connects(cli: Cli, tmp_path: Path) -> None:
    bench = Bench(tmp_path, "so101")
    for servo in bench.bus.servos.values():
        servo.set("Homing_Offset", 0)  # as new
    sweep(bench.model).save(tmp_path / "sweep.json")
    with bench.bus:
        outcome = cli(
            "calibrate", "--arm", "so101", "--port", bench.bus.port, "--sweep", tmp_path / "sweep.json", "--out", tmp_path / "arm.json"
        )
        assert outcome.status == 0, outcome.err
        assert "elbow_flex" in outcome.err and "wrote" in outcome.err
        assert Calibration.load(tmp_path / "arm.json", bench.model) == bench.calibration
        bench.arm.connect()
        assert bench.arm.read().positions == pytest.approx([bench.middle(joint) for joint in bench.model.names], abs=2e-3)


def test_without_a_port_a_recorded_sweep_is_only_calculated(cli: Cli, tmp_path: Path) -> None:
    sweep(load_servo_arm("wx250")).save(tmp_path / "sweep.json")
    outcome = cli("calibrate", "--arm", "wx250", "--sweep", tmp_path / "sweep.json", "--out", tmp_path / "new" / "arm.json")
    assert outcome.status == 0 and (tmp_path / "new" / "arm.json").is_file()


def test_the_sweep_shown_in_the_docs_is_calibrated_without_a_warning(cli: Cli, tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "servo-arms.md").read_text()
    (tmp_path / "sweep.json").write_text(page.partition("```json\n")[2].partition("```")[0])
    outcome = cli("calibrate", "--arm", "so101", "--sweep", tmp_path / "sweep.json", "--out", tmp_path / "so101.json")
    assert outcome.status == 0 and "warning" not in outcome.err
    found = Calibration.load(tmp_path / "so101.json", load_servo_arm("so101")).joints["shoulder_lift"]
    assert found.range_max - found.range_min == pytest.approx(2276 * math.tau / 4096)  # across the wrap


def test_a_doubtful_sweep_is_calibrated_and_warned_about(cli: Cli, tmp_path: Path) -> None:
    recorded = sweep(load_servo_arm("so101"))
    positions = {**recorded.positions, "elbow_flex": [2048, 1500, 2500]}
    Sweep(arm="so101", positions=positions, register_offsets={}).save(tmp_path / "sweep.json")
    outcome = cli("calibrate", "--arm", "so101", "--sweep", tmp_path / "sweep.json", "--out", tmp_path / "arm.json")
    assert outcome.status == 0
    printed = " ".join(outcome.err.split())
    for warning in Calibration.load(tmp_path / "arm.json", load_servo_arm("so101")).warnings:
        assert f"warning: {warning}" in printed
    assert "warning: elbow_flex: swept -0.84 .. 0.69 rad, the model's range is -1.69 .. 1.69 rad, 45% of it was swept" in printed


def test_a_file_that_is_there_is_only_replaced_with_overwrite(cli: Cli, tmp_path: Path) -> None:
    record, out = tmp_path / "sweep.json", tmp_path / "arm.json"
    sweep(load_servo_arm("so101")).save(record)
    out.write_text("mine")
    call = ("calibrate", "--arm", "so101", "--out", out)
    refused = cli(*call, "--sweep", record)
    assert refused.status == 2 and "is there already; valid: another file, or --overwrite" in " ".join(refused.err.split())
    assert out.read_text() == "mine"
    refused = cli(*call, "--port", "/nowhere", "--record", record, "--overwrite")  # replaced only when there is something new
    assert refused.status == 2 and out.read_text() == "mine" and Sweep.load(record) == sweep(load_servo_arm("so101"))
    assert cli(*call, "--sweep", record, "--overwrite").status == 0
    assert Calibration.load(out, load_servo_arm("so101")).arm == "so101"


def test_nothing_is_stored_in_the_servos_where_the_file_cannot_be_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    sweep(load_servo_arm("so101")).save(tmp_path / "sweep.json")
    monkeypatch.setattr(calibration_file, "write_atomically", full)
    with new_arm(tmp_path, "so101") as bus:
        call = ("calibrate", "--arm", "so101", "--port", bus.port, "--sweep", tmp_path / "sweep.json", "--out", tmp_path / "arm.json")
        outcome = cli(*call)
        assert outcome.status == 2 and "arm.json: cannot be written: No space left on device" in " ".join(outcome.err.split())
        assert [servo.get("Homing_Offset") for servo in bus.servos.values()] == [0] * 6


def test_where_a_servo_is_lost_before_its_offset_is_stored_the_file_is_kept(cli: Cli, tmp_path: Path) -> None:
    sweep(load_servo_arm("so101")).save(tmp_path / "sweep.json")
    bus = new_arm(tmp_path, "so101")
    del bus.servos[6]
    with bus:
        call = ("calibrate", "--arm", "so101", "--port", bus.port, "--sweep", tmp_path / "sweep.json", "--out", tmp_path / "arm.json")
        outcome = cli(*call)
    said = " ".join(outcome.err.split())
    assert outcome.status == 2 and "no answer of id [6]" in said and "sweep.json --overwrite" in said
    assert (tmp_path / "arm.json").is_file()


def test_an_arm_that_does_not_answer_is_not_to_be_held(cli: Cli, tmp_path: Path) -> None:
    bus = new_arm(tmp_path, "so101")
    del bus.servos[6]
    with bus:
        outcome = cli("calibrate", "--arm", "so101", "--port", bus.port, "--out", tmp_path / "arm.json")
    assert outcome.status == 2 and "no answer of id [6]" in " ".join(outcome.err.split())
    assert "torque goes off" not in outcome.err


def test_a_sweep_is_named_where_it_cannot_be_calibrated_from(cli: Cli, tmp_path: Path) -> None:
    still = {**sweep(load_servo_arm("so101")).positions, "elbow_flex": [2048, 2049]}
    Sweep(arm="so101", positions=still, register_offsets={}).save(tmp_path / "sweep.json")
    outcome = cli("calibrate", "--arm", "so101", "--sweep", tmp_path / "sweep.json", "--out", tmp_path / "arm.json")
    assert outcome.status == 2 and f"{tmp_path}/sweep.json: elbow_flex did not move" in "".join(outcome.err.split("\n"))
    assert not (tmp_path / "arm.json").exists()


def test_a_joint_that_was_not_moved_is_named_and_nothing_is_written(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enter twice, and nobody touched the arm."""
    read, write = os.pipe()
    os.write(write, b"\n\n")
    with new_arm(tmp_path, "so101") as bus, os.fdopen(read) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        record, out = tmp_path / "sweep.json", tmp_path / "arm.json"
        outcome = cli("calibrate", "--arm", "so101", "--port", bus.port, "--out", out, "--record", record)
    os.close(write)
    assert outcome.status == 2 and "shoulder_pan, shoulder_lift, elbow_flex" in outcome.err and "did not move" in outcome.err
    assert not out.exists() and Sweep.load(record).positions["shoulder_lift"][0] == 4000
    assert "the jaw closed" in outcome.err  # how to hold it


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--arm", "so102", "--port", "/dev/null", "--out", "x.json"), "koch_v1_1"),
        (("--arm", "so101", "--port", "/nowhere/ttyACM0", "--out", "x.json"), "/nowhere/ttyACM0: no such port"),
        (("--arm", "so101", "--out", "x.json"), "neither --port nor --sweep"),
        (("--arm", "so101", "--sweep", "none.json", "--out", "x.json"), "none.json: no such file"),
        (("--arm", "so101", "--sweep", "none.json", "--out", "x.json"), "--record FILE` keeps a sweep"),
        (("--arm", "so101", "--port", "", "--out", "x.json"), "--port '': valid: the serial port"),
        (("--arm", "so101", "--sweep", "none.json", "--record", "r.json", "--out", "x.json"), "--record with --sweep"),
        (("--arm", "so101", "--sweep", "x.json", "--out", "./x.json"), "is the sweep's file"),
        (("--arm", "so101", "--sweep", "none.json", "--out", "."), "--out .: is a folder"),
    ],
)
def test_a_wrong_call_says_what_is_valid(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = cli("calibrate", *arguments)
    assert outcome.status == 2 and named in outcome.err and "Traceback" not in outcome.err


def test_a_servo_that_is_missing_is_named_before_torque_goes_off(tmp_path: Path) -> None:
    model = load_servo_arm("so101")
    bus = new_arm(tmp_path, "so101")
    del bus.servos[6]
    for servo in bus.servos.values():
        servo.set("Torque_Enable", 1)
    with bus, pytest.raises(CalibrationError, match=r"no answer of id \[6\]"):
        record_sweep(bus.port, model, lambda: None, lambda: None, lambda: True)
    assert all(servo.get("Torque_Enable") for servo in bus.servos.values())
