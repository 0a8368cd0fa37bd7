"""Faults that users of robots have met, each with the input that showed it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from robot_bridge.control.limits import LimitsError
from tests.robot_bridge.control.properties import stands_within_bound
from tests.robot_bridge.control.rig import PERIOD_S, SENDER, Rig, bench_limits


def test_joint_order_is_by_name_never_by_index() -> None:
    """The same positions in alphabetical order of names move the same joints (drivers sort, policies do not)."""
    in_order, sorted_names = Rig(), Rig()
    in_order.send((0.10, 0.02, 0.08))
    sorted_names.send((0.02, 0.08, 0.10), names=("elbow", "gripper", "shoulder"))
    assert (in_order.tick(8).positions == sorted_names.tick(8).positions).all()
    assert in_order.position[0] > in_order.position[1] > 0.0


def test_measured_joint_order_is_by_name_never_by_index() -> None:
    rig = Rig((0.3, -0.2, 0.04))
    measured = rig.measured()
    mixed = type(measured)(
        stamp_ns=measured.stamp_ns,
        names=("gripper", "shoulder", "elbow"),
        positions=measured.positions[[2, 0, 1]],
        velocities=np.zeros(3),
        ee_pos=measured.ee_pos,
        ee_quat=measured.ee_quat,
    )
    rig.filter.restart(mixed, rig.now_ns)
    assert (rig.filter.step(mixed, rig.now_ns, rig.source_ns).positions == (0.3, -0.2, 0.04)).all()


def test_clamp_misuse_int_is_accepted_nan_and_negative_are_refused() -> None:
    assert bench_limits(velocity=(5, 5, 1)).velocity == (5.0, 5.0, 1.0)
    for field in ("velocity", "acceleration", "jerk", "stop_acceleration", "stop_jerk", "max_lead"):
        for bad in (math.nan, -1.0, 0.0, math.inf):
            with pytest.raises(LimitsError, match=field):
                bench_limits(**{field: (bad, 1e6, 1e6)})
    with pytest.raises(LimitsError, match="position_max"):
        bench_limits(position_max=(math.nan, 1.0, 0.08))
    with pytest.raises(LimitsError, match="max_orientation_step"):
        bench_limits(max_orientation_step=math.nan)
    for bad in (math.nan, math.inf):  # a NaN action does not switch the limit off: the arm holds
        rig = Rig()
        rig.drive()
        assert rig.reason(np.array([bad, 0.0, 0.04])) == "not_finite"
        assert rig.tick().state == "holding"


def test_the_first_command_away_from_the_measured_pose_ramps_and_never_jumps() -> None:
    """A first command 0.1 rad from measured: rate, acceleration and jerk stay bounded from the very first period."""
    rig = Rig((0.4, -0.3, 0.02))
    assert rig.send((0.5, -0.2, 0.02)) is None
    rig.wait(0.3)
    trace = np.vstack([[(0.4, -0.3, 0.02)] * 3, rig.trace()])
    velocity = np.diff(trace, axis=0) / PERIOD_S
    acceleration = np.diff(velocity, axis=0) / PERIOD_S
    jerk = np.diff(acceleration, axis=0) / PERIOD_S
    assert (np.abs(velocity[2:4]) <= 0.1 * np.array(rig.limits.velocity) + 1e-9).all()
    assert (np.abs(velocity) <= np.array(rig.limits.velocity)).all()
    assert (np.abs(acceleration) <= np.array(rig.limits.stop_acceleration) * (1 + 1e-6)).all()
    assert (np.abs(jerk) <= np.array(rig.limits.stop_jerk) * (1 + 1e-6)).all()


def test_a_dead_sender_leaves_the_arm_held_within_two_periods() -> None:
    rig = Rig()
    rig.drive()
    rig.wait(0.05)
    first = len(rig.outputs)
    assert rig.tick(2).state == "holding"
    stands_within_bound(rig, first)


@pytest.mark.parametrize("seconds", (5.5, -5.5))
def test_a_stamp_five_seconds_off_is_refused_and_ages_use_the_monotonic_clock(seconds: float) -> None:
    rig = Rig()
    assert rig.reason((0.1, 0.0, 0.04), age_s=seconds) == "stamp_outside_window"
    rig = Rig()
    rig.drive()
    rig.source_offset_ns += round(seconds * 1e9)  # the clock of stamps jumps; what was received keeps its age
    assert rig.tick(5).state == "moving"
    assert rig.tick(10).state == "holding"


def test_motion_does_not_resume_by_itself_after_e_stop_release() -> None:
    """E-stop, keep sending, release: nothing moves until rearm and a new authority, and then from the measured pose."""
    rig = Rig()
    rig.drive()
    for _ in range(20):
        rig.filter.estop.receive(True, "button", rig.now_ns)
        rig.stream((0.9, 0.5, 0.04), 0.1)
    stood = rig.position.copy()
    for _ in range(20):
        rig.filter.estop.receive(False, "button", rig.now_ns)
        rig.stream((0.9, 0.5, 0.04), 0.1)
    assert (rig.position == stood).all() and rig.outputs[-1].state == "stopped"
    assert rig.filter.rearm(rig.now_ns, rig.source_ns) is None
    rig.stream((0.9, 0.5, 0.04), 0.5)
    assert (rig.position == stood).all()
    rig.position = stood + (0.1, 0.0, 0.0)  # pushed by hand while it was stopped
    pushed = rig.position.copy()
    assert rig.filter.authority.take("policy", rig.now_ns, SENDER) is None
    assert rig.send(pushed + (0.1, 0.0, 0.0)) is None
    assert np.abs(rig.tick().positions - pushed).max() < 2e-3


def test_a_reading_that_jumped_is_no_place_to_start_from_until_an_operator_has_looked() -> None:
    """A start is from the measured pose: with a wrong reading the arm would be sent there in one period."""
    rig = Rig()
    rig.drive()
    rig.wait(0.5)
    stood = rig.position.copy()
    rig.position = stood + (0.4, 0.0, 0.0)
    assert rig.filter.step(rig.measured(), rig.now_ns, rig.source_ns).positions == pytest.approx(stood)
    assert rig.reason(rig.position) == "fault"
    assert rig.filter.rearm(rig.now_ns, rig.source_ns) is None
    rig.filter.authority.take("policy", rig.now_ns, SENDER)
    assert rig.reason(rig.position) is None


def test_an_arm_whose_driver_was_blocked_goes_on_only_from_where_it_can_have_stayed() -> None:
    for aside, state in ((0.0, "holding"), (0.4, "fault")):
        rig = Rig()
        rig.drive()
        stood = rig.position.copy()
        rig.filter.suspend("the arm does not take commands")
        for _ in range(20):
            output = rig.filter.step(rig.measured(), rig.now_ns, rig.source_ns)
        rig.position = stood + (aside, 0.0, 0.0)
        rig.filter.resume(rig.measured(), rig.now_ns)
        after = rig.filter.step(rig.measured(), rig.now_ns, rig.source_ns)
        assert after.state == state
        assert after.positions == pytest.approx(stood if state == "holding" else output.positions)


def test_a_reading_that_jumped_is_no_place_to_go_on_from_after_the_driver_was_blocked() -> None:
    """It was read there before the driver was blocked, too, and after: the arm would be sent there in one period."""
    rig = Rig()
    rig.drive()
    rig.position += (0.6, 0.0, 0.0)
    rig.filter.step(rig.measured(), rig.now_ns, rig.source_ns)
    rig.filter.suspend("the arm does not take commands")
    for _ in range(40):
        output = rig.filter.step(rig.measured(), rig.now_ns, rig.source_ns)
    rig.filter.resume(rig.measured(), rig.now_ns)
    after = rig.filter.step(rig.measured(), rig.now_ns, rig.source_ns)
    assert after.state == "fault" and "shoulder is measured" in after.reason
    assert after.positions == pytest.approx(output.positions)


def test_an_arm_that_lags_behind_its_output_goes_on_after_the_driver_was_blocked() -> None:
    rig = Rig()
    rig.drive((0.9, 0.2, 0.04), 0.6)
    speed = rig.outputs[-1].velocities
    assert speed[0] > 1.0
    lagging = rig.position - 0.15 * speed
    rig.position = lagging.copy()
    rig.filter.suspend("the arm does not take commands")
    for _ in range(40):
        rig.filter.step(rig.measured(), rig.now_ns, rig.source_ns)
    rig.filter.resume(rig.measured(), rig.now_ns)
    after = rig.filter.step(rig.measured(), rig.now_ns, rig.source_ns)
    assert after.state == "holding" and after.positions == pytest.approx(lagging)


@pytest.mark.parametrize("armed", [False, True])
def test_a_reading_that_jumps_between_a_command_and_the_next_period_is_no_place_to_start_from(armed: bool) -> None:
    rig = Rig()
    if armed:  # else it has moved since an operator looked
        assert rig.filter.rearm(rig.now_ns, rig.source_ns) is None
        rig.filter.authority.take("policy", rig.now_ns, SENDER)
    else:
        rig.drive()
        rig.wait(0.5)
    stood = rig.position.copy()
    assert rig.send(stood + (0.1, 0.0, 0.0)) is None
    rig.position = stood + (0.4, 0.0, 0.0)
    output = rig.filter.step(rig.measured(), rig.now_ns, rig.source_ns)
    assert output.state == "fault" and output.positions == pytest.approx(stood)


def test_a_reading_that_drifts_away_from_a_standing_arm_is_no_place_to_go_on_from() -> None:
    rig = Rig()
    rig.drive()
    rig.wait(0.5)
    for _ in range(60):
        rig.position += (0.01, 0.0, 0.0)
        output = rig.filter.step(rig.measured(), rig.now_ns, rig.source_ns)
    rig.filter.suspend("the arm does not take commands")
    rig.filter.resume(rig.measured(), rig.now_ns)
    after = rig.filter.step(rig.measured(), rig.now_ns, rig.source_ns)
    assert after.state == "fault" and after.positions == pytest.approx(output.positions)


def test_a_late_arm_is_not_taken_to_be_where_its_motion_began() -> None:
    """It is 0.3 rad behind on its way; a reading that jumps back to the begin is no place to go on from."""
    rig = Rig((-1.0, 0.0, 0.04))
    begin, sent = rig.measured(), [rig.position] * 20
    for period in range(100):
        rig.position = sent[-20]
        if period % 5 == 0:
            assert rig.send(sent[-20] + (0.5, 0.0, 0.0)) is None
        sent.append(rig.filter.step(rig.measured(), rig.now_ns, rig.source_ns).positions)
        rig.now_ns += round(PERIOD_S * 1e9)
    assert rig.position[0] > -0.5 and sent[-1][0] - rig.position[0] > 0.26
    rig.filter.suspend("the arm does not take commands")
    for _ in range(40):
        rig.filter.step(begin, rig.now_ns, rig.source_ns)
    rig.filter.resume(begin, rig.now_ns)
    assert rig.filter.step(begin, rig.now_ns, rig.source_ns).state == "fault"


def test_an_arm_that_was_led_by_hand_starts_from_where_it_was_led() -> None:
    rig = Rig()
    assert rig.filter.rearm(rig.now_ns, rig.source_ns) is None
    rig.filter.authority.take("policy", rig.now_ns, SENDER)
    for _ in range(80):
        rig.position += (0.01, 0.0, 0.0)
        rig.filter.step(rig.measured(), rig.now_ns, rig.source_ns)
    led = rig.position.copy()
    assert rig.send(led + (0.1, 0.0, 0.0)) is None
    assert np.abs(rig.tick().positions - led).max() < 2e-3
