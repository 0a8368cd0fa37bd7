"""The drivers of servo arms against an emulated bus; time is by hand unless a test says so."""

from __future__ import annotations

import importlib
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from robot_bridge.arms.base import Arm, ArmLost
from robot_bridge.arms.driver_thread import DriverThread
from robot_bridge.control.clock import SystemClock
from robot_bridge.control.kinematics import Kinematics
from tests.robot_bridge.arms.servo_bench import GRIPPER_WAY, Bench

ARMS = ["so101", "koch_v1_1"]
EVERY_ARM = ["so101", "so100", "koch_v1_1", "wx250", "vx300s"]


def until(condition, seconds: float = 30.0) -> None:
    """Waits for something that another thread does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.005)


@pytest.mark.parametrize("name", EVERY_ARM)
def test_it_reads_where_the_joints_are_and_goes_where_it_is_sent(tmp_path: Path, name: str) -> None:
    bench = Bench(tmp_path, name)
    arm = bench.arm
    assert isinstance(arm, Arm)
    with bench.bus:
        arm.connect()
        state = arm.read()
        assert state.names == arm.limits.names == bench.model.names
        middle = [bench.middle(joint) for joint in state.names]
        assert state.positions == pytest.approx(middle, abs=2e-3)
        # Within a part of the range that no part of an arm can leave on the way.
        target = np.clip(state.positions + 0.2, arm.limits.position_min, arm.limits.position_max)
        bench.send(target)
        bench.seconds(0.04)
        assert (arm.read().velocities > 0.0).all()
        state = bench.drive(1.0)
        assert state.positions == pytest.approx(target, abs=2e-3)
        assert [bench.servo(joint).shaft for joint in state.names] == pytest.approx(
            [bench.shaft(joint, position) for joint, position in zip(state.names, target, strict=True)], abs=1.5
        )
        assert state.stamp_ns == bench.clock.source_ns()
        if bench.model.mjcf is None:
            assert state.ee_pos.tolist() == [0, 0, 0] and state.ee_quat.tolist() == [0, 0, 0, 1]
        else:
            assert state.ee_pos == pytest.approx(Kinematics(arm.description).fk(state.positions[:-1])[0])
        arm.close()
        with pytest.raises(ArmLost, match="not connected"):
            arm.read()


def test_a_joint_with_two_servos_moves_both(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "vx300s")
    with bench.bus:
        bench.arm.connect()
        first, second = bench.bus.servos[2], bench.bus.servos[3]
        start = first.shaft, second.shaft
        bench.send(bench.arm.read().positions + np.eye(7)[1] * 0.1)
        bench.drive(1.0)
        assert first.get("Drive_Mode") == 1 and second.get("Drive_Mode") == 0 and second.get("Secondary_ID") == 2
        assert abs(first.shaft - start[0]) == pytest.approx(65, abs=2)
        second.overload()
        with pytest.raises(ArmLost, match=r"servo 3 \(shoulder\): overload"):
            bench.drive(1.0)


@pytest.mark.parametrize("name", ARMS)
def test_connecting_turns_torque_on_and_moves_nothing(tmp_path: Path, name: str) -> None:
    bench = Bench(tmp_path, name)
    with bench.bus:
        for servo in bench.bus.servos.values():
            servo.set("Goal_Position", 1)  # of whoever drove it before
        before = [servo.shaft for servo in bench.bus.servos.values()]
        bench.arm.connect()
        bench.seconds(1.0)
        assert [servo.shaft for servo in bench.bus.servos.values()] == pytest.approx(before, abs=1.0)
        assert all(servo.get("Torque_Enable") for servo in bench.bus.servos.values())


@pytest.mark.parametrize("name", [*ARMS, "vx300s"])
def test_connecting_anew_drops_nothing(tmp_path: Path, name: str) -> None:
    """Torque never goes off, also where a register in RAM has to be set again."""
    bench = Bench(tmp_path, name)
    with bench.bus:
        bench.arm.connect()
        gripper = bench.servo("gripper")
        gripper.set("Torque_Limit" if bench.model.protocol == "feetech" else "Goal_Current", 7)
        limp: list[int] = []
        for servo in bench.bus.servos.values():
            _watch_torque(servo, limp)
        bench.arm.connect()
        bench.arm.read()
        assert limp == []
        assert gripper.get("Torque_Limit" if bench.model.protocol == "feetech" else "Goal_Current") != 7


def _watch_torque(servo, limp: list[int]) -> None:
    write = servo.write

    def watched(address: int, data: bytes) -> int:
        error = write(address, data)
        if not servo.get("Torque_Enable"):
            limp.append(servo.id)
        return error

    servo.write = watched


# -- connecting: every failure says what to check ------------------------------------------------------------------------


def test_a_missing_port_a_forbidden_one_and_one_in_use_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, "so101")
    with pytest.raises(ArmLost, match="no such port; is the adapter plugged in"):
        bench.arm.connect()
    with bench.bus:
        other = Bench(tmp_path, "so101").arm
        other.connect()
        with pytest.raises(ArmLost, match="another process uses it"):
            bench.arm.connect()
        other.close()
        monkeypatch.setattr(os, "access", lambda path, mode: False)
        with pytest.raises(ArmLost, match="no permission.*dialout"):
            bench.arm.connect()


@pytest.mark.parametrize(("name", "library"), [("so101", "scservo_sdk"), ("koch_v1_1", "dynamixel_sdk")])
def test_a_missing_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, library: str) -> None:
    bench = Bench(tmp_path, name)
    real = importlib.import_module

    def without(module: str, *rest):
        if module == library:
            raise ImportError(module)
        return real(module, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(ArmLost, match=rf"{library}: pip install 'armstack\[{bench.model.protocol}\]'"):
        bench.arm.connect()


@pytest.mark.parametrize("name", ARMS)
def test_a_servo_that_does_not_answer_is_named_with_those_that_do(tmp_path: Path, name: str) -> None:
    bench = Bench(tmp_path, name, patience_s=0.05)
    bench.bus.servos[12] = bench.bus.servos.pop(3)
    bench.bus.servos[12].id = 12
    with bench.bus, pytest.raises(ArmLost, match=r"no answer of id \[3\], answered: \[1, 2, 4, 5, 6, 12\]"):
        bench.arm.connect()


def test_a_servo_of_another_model_is_named(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "koch_v1_1")
    bench.bus.servos[2].set("Model_Number", 1020)
    with bench.bus, pytest.raises(ArmLost, match=r"found \{2: 'xm430-w350'\}, valid for koch_v1_1: \{2: 'xl430-w250'\}"):
        bench.arm.connect()


def test_servos_with_another_homing_offset_are_of_another_arm(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "so101")
    bench.bus.servos[3].set("Homing_Offset", 7)
    with bench.bus, pytest.raises(ArmLost, match=r"servo 3 \(elbow_flex\): Homing_Offset is 7.*armstack calibrate"):
        bench.arm.connect()


@pytest.mark.parametrize("name", ARMS)
def test_a_servo_with_an_error_is_not_connected(tmp_path: Path, name: str) -> None:
    bench = Bench(tmp_path, name)
    bench.bus.servos[3].overload()
    with bench.bus, pytest.raises(ArmLost, match=r"servo 3 \(elbow_flex\): overload"):
        bench.arm.connect()


# -- commands ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("end", [-1, 1])
def test_no_joint_takes_a_target_outside_its_limits(tmp_path: Path, name: str, end: int) -> None:
    bench = Bench(tmp_path, name)
    arm = bench.arm
    with bench.bus:
        arm.connect()
        start = arm.read().positions
        edges = np.array(arm.limits.position_max if end > 0 else arm.limits.position_min)
        goals = [servo.get("Goal_Position") for servo in bench.bus.servos.values()]
        for i, joint in enumerate(arm.joint_names):
            for bad in (edges[i] + end * 1e-3, end * np.inf, np.nan):
                target = start.copy()
                target[i] = bad
                with pytest.raises(ArmLost, match=f"^{joint}: target .*nothing was sent"):
                    arm.command(target, 0.01)
        arm.read()  # what would have been sent has arrived before this is answered
        assert [servo.get("Goal_Position") for servo in bench.bus.servos.values()] == goals
        arm.command(edges, 0.01)
        arm.read()
        assert [servo.get("Goal_Position") for servo in bench.bus.servos.values()] != goals


@pytest.mark.parametrize("name", ARMS)
def test_stop_holds_where_it_was_measured_with_torque_on(tmp_path: Path, name: str) -> None:
    bench = Bench(tmp_path, name)
    with bench.bus:
        bench.arm.connect()
        target = bench.arm.read().positions + 0.3
        bench.send(target)
        bench.seconds(0.05)
        moving = bench.arm.read()
        assert (moving.velocities > 0).all()
        bench.arm.stop()
        bench.arm.read()
        bench.seconds(1.0)
        assert bench.bus.servos[3].get("Torque_Enable")
        assert bench.bus.servos[3].shaft == pytest.approx(bench.shaft("elbow_flex", moving.positions[2]), abs=1.5)
        assert bench.servo("gripper").shaft == pytest.approx(bench.shaft("gripper", target[-1]), abs=1.5)  # drops nothing


@pytest.mark.parametrize("sense", [1, -1])
@pytest.mark.parametrize("name", ARMS)
def test_pain_5_open_opens_and_closed_closes(tmp_path: Path, name: str, sense: int) -> None:
    """Whichever way the gripper's servo turns: `closed` is the end at which the sweep began, `open` the other."""
    bench = Bench(tmp_path, name, gripper_sense=sense)
    arm, gripper = bench.arm, bench.arm.limits.gripper
    assert gripper is not None
    closed_at = bench.shaft("gripper", 0.0)
    with bench.bus:
        arm.connect()
        for value, ticks in ((gripper.open, closed_at + sense * GRIPPER_WAY), (gripper.closed, closed_at)):
            bench.send(np.append(arm.read().positions[:-1], value))
            bench.drive(2.0)
            assert bench.servo("gripper").shaft == pytest.approx(ticks, abs=1.5)
            assert arm.read().positions[-1] == pytest.approx(value, abs=3e-3)


@pytest.mark.parametrize("name", ARMS)
def test_pain_17_a_gripper_that_is_stuck_delays_nothing_and_the_newest_command_wins(tmp_path: Path, name: str) -> None:
    bench = Bench(tmp_path, name)
    arm = bench.arm
    with bench.bus:
        arm.connect()
        start = arm.read().positions
        gripper = bench.servo("gripper")
        gripper.obstacle = (gripper.shaft - 5, gripper.shaft + 5)
        answered = bench.arm.bus.counts["replies"]
        for step in range(100):
            arm.command(start + np.array([0.002 * step, 0, 0, 0, 0, -0.9 * start[-1]]), 0.01)
            bench.seconds(0.01)
            arm.read()
        assert bench.arm.bus.counts["replies"] - answered == 100 * 6 + 10 * 6  # every tenth read asks for torque, too
        assert arm.read().positions[0] == pytest.approx(start[0] + 0.198, abs=0.03)
        assert abs(gripper.shaft - bench.shaft("gripper", start[-1])) < 7
        gripper.obstacle = (-np.inf, np.inf)
        bench.send(start + np.array([0.2, 0, 0, 0, 0, 0.2 * start[-1]]))  # opens instead
        bench.drive(2.0)
        assert arm.read().positions[-1] == pytest.approx(1.2 * start[-1], abs=3e-3)


# -- a bad line ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARMS)
def test_lost_replies_are_counted_exactly(tmp_path: Path, name: str) -> None:
    """One byte in a hundred lost and one checksum in fifty wrong: the driver counts what the emulator damaged."""
    bench = Bench(tmp_path, name, patience_s=0.03)
    arm = bench.arm
    with bench.bus:
        arm.connect()
        start = arm.read().positions
        arm.bus.counts.clear()
        bench.faults.byte_loss, bench.faults.bad_checksum = 0.01, 0.02
        sent = 0
        for step in range(250):
            bench.seconds(0.02)
            sent += _send_and_read(arm, start + 0.1 * np.sin(step / 25) * np.eye(6)[0])
        bench.faults.byte_loss = bench.faults.bad_checksum = 0.0
        bench.seconds(0.02)
        arm.read()
    counts, faults = arm.bus.counts, bench.faults.counts
    assert faults["missing_replies"] > 100 and faults["damaged_sync_writes"] > 10
    assert counts["lost"] - counts["late"] == faults["missing_replies"]
    assert sent >= 250 - 5


def _send_and_read(arm, target: np.ndarray) -> bool:
    """Whether both worked; a servo that happened to be silent for long is connected anew by whoever drives."""
    try:
        arm.command(target, 0.02)
        arm.read()
        return True
    except ArmLost as lost:
        assert "no usable answer" in str(lost)
        return False


@pytest.mark.parametrize("name", ARMS)
def test_a_damaged_sync_write_is_overwritten_by_the_next(tmp_path: Path, name: str) -> None:
    bench = Bench(tmp_path, name)
    arm = bench.arm
    with bench.bus:
        arm.connect()
        start = arm.read().positions
        goal = bench.servo("shoulder_pan").get("Goal_Position")
        bench.faults.byte_loss = 1.0
        arm.command(start + np.eye(6)[0] * 0.1, 0.02)
        until(lambda: bench.faults.counts["damaged_sync_writes"] == 1)
        bench.faults.byte_loss = 0.0
        arm.read()
        assert bench.servo("shoulder_pan").get("Goal_Position") == goal
        arm.command(start + np.eye(6)[0] * 0.1, 0.02)
        arm.read()
        assert bench.servo("shoulder_pan").get("Goal_Position") != goal


def test_a_position_that_jumps_is_dropped_counted_and_believed_when_it_can_have_got_there(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "so101")
    arm, servo = bench.arm, bench.servo("elbow_flex")
    with bench.bus:
        arm.connect()
        before = arm.read()
        bench.seconds(0.01)
        with bench.bus.lock:
            servo.set("Torque_Enable", 0)
            servo.turn_by_hand(400)  # 0.6 rad within 10 ms
            servo.set("Torque_Enable", 1)
        jumped = arm.read()
        assert arm.counts["stale"] == 1
        assert jumped.positions == pytest.approx(before.positions, abs=2e-3)
        assert jumped.stamp_ns == before.stamp_ns  # the oldest joint's
        bench.seconds(0.2)
        assert arm.read().positions[2] == pytest.approx(before.positions[2] + 0.6136, abs=3e-3)
        assert arm.counts["stale"] == 1


def test_a_servo_that_falls_silent_is_lost_after_a_quarter_of_a_second(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "so101", patience_s=0.1)
    with bench.bus:
        bench.arm.connect()
        del bench.bus.servos[4]
        for _ in range(12):
            bench.seconds(0.02)
            bench.arm.read()
        bench.seconds(0.02)
        with pytest.raises(ArmLost, match=r"no usable answer of servo 4 \(wrist_flex\)"):
            bench.arm.read()


def real_time(bench: Bench, periods: int) -> float:
    """Drives a sine at 50 Hz of wall time; returns the seconds it took."""
    arm = bench.arm
    with bench.bus:
        arm.connect()
        start = arm.read().positions
        arm.bus.counts.clear()
        bench.faults.byte_loss, bench.faults.bad_checksum = 0.01, 0.02
        begun = time.monotonic()
        for step in range(periods):
            _send_and_read(arm, start + 0.1 * np.sin(step / 25) * np.eye(6)[0])
            time.sleep(max(begun + 0.02 * (step + 1) - time.monotonic(), 0.0))
        took_s = time.monotonic() - begun
        bench.faults.byte_loss = bench.faults.bad_checksum = 0.0
        asked = arm.bus.counts["replies"] + arm.bus.counts["lost"]
        until(lambda: len(arm.bus.sync_read(bench.arm.model.servos, 0, 1)) == 6)  # whatever was late has come before
    counts, faults = arm.bus.counts, bench.faults.counts
    assert counts["lost"] - counts["late"] == faults["missing_replies"] > 0
    assert 6 * periods <= asked <= 6 * (periods + periods // 5)  # each servo once a period, and torque now and then: nothing is repeated
    return took_s


@pytest.mark.parametrize("name", ARMS)
def test_at_50_hz_on_a_bad_line_nothing_is_repeated_and_all_is_counted(tmp_path: Path, name: str) -> None:
    assert real_time(Bench(tmp_path, name, patience_s=0.012, clock=SystemClock()), 250) >= 5.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ARMS)
def test_at_50_hz_for_a_minute_on_a_bad_line_the_rate_is_kept(tmp_path: Path, name: str) -> None:
    took_s = real_time(Bench(tmp_path, name, patience_s=0.012, clock=SystemClock()), 3000)
    assert took_s == pytest.approx(60.0, rel=0.01)


# -- faults --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARMS)
def test_torque_that_went_off_is_a_fault_within_ten_reads(tmp_path: Path, name: str) -> None:
    bench = Bench(tmp_path, name)
    with bench.bus:
        bench.arm.connect()
        bench.arm.read()
        with bench.bus.lock:
            bench.bus.servos[5].set("Torque_Enable", 0)
        with pytest.raises(ArmLost, match=r"servo 5 \(wrist_roll\): torque is off"):
            for _ in range(10):
                bench.arm.read()
        bench.arm.connect()
        bench.arm.read()


@pytest.mark.parametrize("name", ARMS)
def test_an_overload_is_a_fault_at_once_and_stays_one_until_it_is_over(tmp_path: Path, name: str) -> None:
    bench = Bench(tmp_path, name)
    with bench.bus:
        bench.arm.connect()
        bench.arm.read()
        with bench.bus.lock:
            bench.servo("gripper").overload()
        for call in (bench.arm.read, bench.arm.connect):
            with pytest.raises(ArmLost, match=r"servo 6 \(gripper\): overload"):
                call()
        with bench.bus.lock:
            bench.servo("gripper").reboot()
        bench.arm.connect()
        bench.arm.read()


def test_on_a_silent_bus_dynamixels_stop_and_say_so(tmp_path: Path) -> None:
    """As when the process was killed: the watchdog of the servos stops them on their way."""
    bench = Bench(tmp_path, "koch_v1_1")
    with bench.bus:
        bench.arm.connect()
        start = bench.arm.read().positions
        bench.send(start + np.eye(6)[0] * 3.0)
        bench.seconds(1.0)
        stopped = bench.servo("shoulder_pan").shaft
        bench.seconds(2.0)
        assert bench.servo("shoulder_pan").shaft == stopped != pytest.approx(bench.shaft("shoulder_pan", start[0] + 3.0), abs=50)
        with pytest.raises(ArmLost, match="bus watchdog stopped it"):
            bench.drive(1.0)
        bench.arm.connect()
        bench.send(start)
        bench.seconds(0.4)
        assert bench.servo("shoulder_pan").shaft != stopped


def test_on_a_silent_bus_feetechs_go_on_to_their_last_target(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "so101")
    with bench.bus:
        bench.arm.connect()
        start = bench.arm.read().positions
        bench.send(start + np.eye(6)[0] * 0.03)
        bench.seconds(5.0)
        assert bench.servo("shoulder_pan").shaft == pytest.approx(bench.shaft("shoulder_pan", start[0] + 0.03), abs=1.5)


@pytest.mark.parametrize("name", ARMS)
def test_an_unplugged_port_is_a_lost_arm_that_is_found_again(tmp_path: Path, name: str) -> None:
    bench = Bench(tmp_path, name, patience_s=0.2, clock=SystemClock())
    driver = DriverThread(bench.arm, 0.01)
    with bench.bus:
        bench.arm.connect()
        driver.start()
        until(lambda: driver.latest is not None)
        bench.bus.unplug()
        until(lambda: driver.error is not None and "ArmLost" in driver.error)
        until(lambda: "no such port" in (driver.error or ""))
        bench.bus.plug_in()
        until(lambda: driver.error is None)
        seen = driver.latest
        until(lambda: driver.latest is not seen)
        driver.close()
    assert not any(thread.name == "servo-bus" for thread in threading.enumerate())
