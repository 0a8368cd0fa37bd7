"""The control loop in line and in real time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from robot_bridge.arms.base import Arm, ArmLost
from robot_bridge.arms.blocking_gripper import BlockingGripper
from robot_bridge.control.clock import ManualClock, SystemClock
from robot_bridge.control.command import JointCommand, Refusal
from robot_bridge.control.filter import CommandFilter
from robot_bridge.control.holds import GuardReport
from robot_bridge.control.loop import ControlLoop, Period
from tests.robot_bridge.arms.fake_arm import FakeArm
from tests.robot_bridge.control.rig import bench_limits, planar


def send(loop: ControlLoop, delta: float = 0.1, sender: str = "a") -> Refusal | None:
    arm = loop.arm
    assert isinstance(arm, FakeArm)
    command = JointCommand(
        stamp_ns=loop.clock.source_ns(),
        source="policy",
        sender=sender,
        names=arm.joint_names,
        positions=(arm.position + (delta, 0.0, 0.0))[None],
        time_from_start_s=np.array([0.1]),
    )
    return loop.receive(command)


def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.002)


@pytest.fixture
def live() -> Iterator[ControlLoop]:
    arm = FakeArm()
    clock = SystemClock()
    loop = ControlLoop(arm=arm, filter=CommandFilter(arm.limits, forward=planar, now_ns=clock.monotonic_ns()), clock=clock)
    loop.start()
    assert loop.take("policy", "a") is None
    until(lambda: bool(loop.drain()))
    yield loop
    arm.free.set()
    loop.close()


def streaming(loop: ControlLoop) -> tuple[threading.Event, threading.Thread]:
    """A sender at 20 Hz until the event is set."""
    end = threading.Event()

    def run() -> None:
        while not end.wait(0.05):
            send(loop)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return end, thread


def periods_until(loop: ControlLoop, condition: Callable[[Period], bool]) -> list[Period]:
    seen: list[Period] = []

    def found() -> bool:
        seen.extend(loop.drain())
        return any(condition(period) for period in seen)

    until(found)
    return seen


def test_an_arm_is_the_protocol() -> None:
    assert isinstance(FakeArm(), Arm)


def test_the_filter_must_be_the_arms() -> None:
    with pytest.raises(ValueError, match="limits"):
        ControlLoop(arm=FakeArm(), filter=CommandFilter(bench_limits(jerk=(1.0, 1.0, 1.0))), clock=ManualClock())


def test_the_loop_moves_an_arm_in_real_time_and_never_hands_over_more_than_one_period(live: ControlLoop) -> None:
    end, thread = streaming(live)
    periods_until(live, lambda period: period.output.positions[0] > 0.1)
    end.set()
    thread.join()
    arm = live.arm
    assert isinstance(arm, FakeArm)
    steps = np.abs(np.diff(np.array(arm.commands), axis=0))
    assert (steps <= np.array(arm.limits.velocity) * 0.01 * 3 + 1e-9).all()  # a late driver may skip a period or two
    periods_until(live, lambda period: period.output.state == "holding")


@pytest.mark.parametrize("blocked", ("driver", "callback"))
def test_e_stop_drops_the_target_within_two_periods_while_something_is_blocked(live: ControlLoop, blocked: str) -> None:
    arm = live.arm
    assert isinstance(arm, FakeArm)
    end, thread = streaming(live)
    periods_until(live, lambda period: period.output.state == "moving" and period.output.positions[0] > 0.05)
    stuck = threading.Event()
    if blocked == "driver":
        arm.free.clear()
        until(arm.blocked.is_set)
    else:  # a callback that never returns keeps its thread, not the loop
        threading.Thread(target=lambda: (send(live), stuck.wait(2.0)), daemon=True).start()
    live.drain()
    live.e_stop(True, "button")
    pressed_ns = time.time_ns()
    seen = periods_until(live, lambda period: period.output.state == "stopped" and not period.output.velocities.any())
    after = [period.output.state for period in seen if period.stamp_ns > pressed_ns]
    assert after and "moving" not in after[2:]
    until(arm.stopped.is_set)  # the vendor's stop does not wait for the blocked call either
    assert live.status().state == "stopped" and live.status().authority is None
    stuck.set()
    end.set()
    thread.join()
    assert live.rearm() is not None  # pressed within the last second


def test_an_arm_that_stayed_behind_is_not_handed_at_once_what_it_missed(live: ControlLoop) -> None:
    arm = live.arm
    assert isinstance(arm, FakeArm)
    end, thread = streaming(live)
    periods_until(live, lambda period: period.output.positions[0] > 0.1)
    arm.free.clear()
    until(arm.blocked.is_set)
    periods_until(live, lambda period: "driver" in period.output.reason and not period.output.velocities.any())
    arm.free.set()
    periods_until(live, lambda period: period.output.state == "moving")
    end.set()
    thread.join()
    steps = np.abs(np.diff(np.array(arm.commands), axis=0))
    # At most what fits into the time after which a driver call counts as stalled.
    assert (steps[:, :2] <= np.array(arm.limits.velocity[:2]) * 0.01 * 6).all()


def test_a_blocked_driver_is_a_lost_arm_and_motion_does_not_come_back_by_itself(live: ControlLoop) -> None:
    arm = live.arm
    assert isinstance(arm, FakeArm)
    end, thread = streaming(live)
    periods_until(live, lambda period: period.output.state == "moving")
    arm.free.clear()
    periods_until(live, lambda period: period.output.state == "fault")
    assert "driver call" in live.status().reason
    assert "does not answer" in str(live.rearm())
    arm.free.set()
    until(lambda: live.rearm() is None)
    stood = arm.position.copy()
    periods: list[Period] = []
    until(lambda: len(periods.extend(live.drain()) or periods) >= 30)  # type: ignore[func-returns-value]
    assert (arm.position == stood).all() and live.status().state == "holding"
    assert live.take("policy", "a") is None
    periods_until(live, lambda period: period.output.state == "moving")
    end.set()
    thread.join()


def test_an_arm_that_raises_is_reconnected_but_waits_for_rearm(live: ControlLoop) -> None:
    arm = live.arm
    assert isinstance(arm, FakeArm)
    arm.lost = True
    periods_until(live, lambda period: period.output.state == "fault")
    assert "cable out" in live.status().reason
    until(arm.stopped.is_set)
    arm.lost = False
    until(lambda: live.rearm() is None)
    assert arm.connects >= 2
    assert send(live).reason == "no_authority"  # type: ignore[union-attr]
    assert live.take("policy", "a") is None
    until(lambda: send(live) is None)
    periods_until(live, lambda period: period.output.state == "moving")


def test_a_gripper_that_blocks_a_second_leaves_the_arm_at_100_hz_and_the_newest_command_wins() -> None:
    busy, free, moved = threading.Event(), threading.Event(), []

    def close_fingers(opening: float) -> None:
        busy.set()
        free.wait(5.0)
        moved.append(opening)

    gripper = BlockingGripper(close_fingers)

    class Arm(FakeArm):
        def command(self, positions: np.ndarray, period_s: float) -> None:
            super().command(positions, period_s)
            gripper.command(float(positions[2]))

    arm = Arm()
    loop = ControlLoop(arm=arm, filter=CommandFilter(arm.limits, forward=planar), clock=ManualClock())
    loop.restart()
    loop.take("policy", "a")
    for _ in range(20):
        send(loop)
        loop.lockstep_step()
    assert busy.wait(1.0) and len(arm.commands) == 100 and arm.position[0] > 0.1
    gripper.command(0.01)
    gripper.command(0.02)
    free.set()
    until(lambda: moved[-1:] == [0.02])
    assert 0.01 not in moved
    gripper.close()


def test_a_gripper_that_raises_says_so_and_goes_on() -> None:
    done = threading.Event()

    def move(opening: float) -> None:
        if opening < 0.01:
            raise OSError("fingers jammed")
        done.set()

    gripper = BlockingGripper(move)
    gripper.command(0.0)
    until(lambda: gripper.error is not None)
    assert "fingers jammed" in str(gripper.error)
    gripper.command(0.05)
    assert done.wait(2.0)
    until(lambda: gripper.error is None)
    gripper.close()


def in_line() -> tuple[ControlLoop, FakeArm]:
    arm = FakeArm()
    clock = ManualClock()
    move = arm.command

    def command(positions: np.ndarray, period_s: float) -> None:
        move(positions, period_s)
        clock.advance(period_s)

    arm.command = command  # type: ignore[method-assign]
    loop = ControlLoop(arm=arm, filter=CommandFilter(arm.limits, forward=planar), clock=clock)
    loop.restart()
    return loop, arm


def test_lockstep_is_one_policy_period_of_control_periods() -> None:
    loop, arm = in_line()
    loop.take("policy", "a")
    assert send(loop) is None
    refusal, periods = loop.lockstep_step()
    assert refusal is None and len(periods) == 5 and len(arm.commands) == 5
    assert loop.clock.monotonic_ns() == 50_000_000
    assert [period.stamp_ns for period in loop.drain()] == [0, 10_000_000, 20_000_000, 30_000_000, 40_000_000]
    assert loop.drain() == []


def test_a_lost_arm_in_line_raises_and_is_a_fault() -> None:
    loop, arm = in_line()
    arm.lost = True
    with pytest.raises(ArmLost, match="cable out"):
        loop.lockstep_step()
    assert loop.status().state == "fault"


def test_status_says_what_keeps_the_arm() -> None:
    loop, _ = in_line()
    status = loop.status()
    assert (status.state, status.accepts, status.authority) == ("holding", False, None)
    loop.take("policy", "a")
    assert loop.status().accepts
    loop.guard(GuardReport(name="guard", hold=True, message="hand seen"))
    status = loop.status()
    assert (status.state, status.accepts, status.holds) == ("holding", False, {"guard": "hand seen"})
    assert send(loop) is not None
    assert loop.status().counts["held"] == 1 and loop.status().last_refusal.reason == "held"  # type: ignore[union-attr]
    loop.guard(GuardReport(name="guard", hold=False))
    loop.speed(0.5, "separation")
    assert loop.status().speed_scale == 0.5
    assert send(loop) is None
    loop.tick()
    assert loop.status().state == "moving"
    assert loop.release("policy", "a") is None
    loop.tick()
    assert loop.status().state == "holding"
    assert loop.clear_hold("nobody") is not None
