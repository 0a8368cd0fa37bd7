"""`armstack calibrate` with a recorded sweep and with an emulated arm."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from robot_bridge.arms.servo_calibration import Calibration, CalibrationError, Sweep, calibrate
from robot_bridge.arms.servo_model import load_servo_arm
from robot_bridge.arms.servo_sweep import record_sweep
from sim_envs.servo_bus.bus import EmulatedBus
from tests.robot_bridge.arms.servo_bench import Bench, sweep, way, zeros
from tests.robot_bridge.command_line import Cli


def new_arm(folder: Path, name: str) -> EmulatedBus:
    """Servos as they come, mounted anywhere, standing at the arm's zero."""
    model = load_servo_arm(name)
    bus = EmulatedBus(model.servos, folder / "ttyACM0")
    for joint in model.joints:
        bus.servos[joint.id].turn_by_hand(zeros(model)[joint.name] - 2048)
    return bus


@pytest.mark.parametrize("name", ["so101", "koch_v1_1"])
def test_an_arm_moved_by_hand_is_calibrated_across_the_wrap(tmp_path: Path, name: str) -> None:
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
        recorded = record_sweep(bus.port, model, lambda: None, done)
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
        record_sweep(bus.port, model, lambda: None, lambda: True)
    assert all(servo.get("Torque_Enable") for servo in bus.servos.values())
