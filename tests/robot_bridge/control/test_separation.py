"""The rule of speed and separation: its distances, and what it refuses."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from robot_bridge.control.arm_shape import ArmShape, between
from robot_bridge.control.separation import BrakingArm, Separation, SeparationError, SeparationSettings
from tests.robot_bridge.control.guarded_bench import MJCF, SETTINGS, shape
from tests.robot_bridge.control.rig import NAMES, PERIOD_S, Rig, bench_limits

NOW = 10_000_000_000
FAR = 9.0


def rule(settings: SeparationSettings = SETTINGS) -> Separation:
    """A rule that knows its arm, which stands, and has heard of nobody."""
    made = Separation(settings, BrakingArm(bench_limits(), shape(), period_s=PERIOD_S))
    made.hear_arm(np.zeros(2), np.zeros(2), NOW)
    return made


def seconds(value: float) -> int:
    return NOW + round(value * 1e9)


# -- distances and speeds ---------------------------------------------------------------------------------------------------


def test_the_distance_between_segments_is_that_of_their_nearest_points() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(12, 2, 3)), rng.normal(size=(9, 2, 3))
    first[0, 1], second[0, 1] = first[0, 0], second[0, 0]  # points
    second[1] = first[1] + [0.0, 0.0, 1.0]  # parallel
    along = np.linspace(0, 1, 201)[:, None]
    points = [[a + along * (b - a) for a, b in segments] for segments in (first, second)]
    sampled = np.array([[np.linalg.norm(p[:, None] - q[None], axis=-1).min() for q in points[1]] for p in points[0]])
    found = between(first, second)
    assert (found <= sampled + 1e-12).all() and (sampled - found).max() < 0.01


def test_lever_arms_are_how_far_points_move() -> None:
    arm, joints = shape(), np.array([0.3, -0.8])
    expected = [[0.5, 0.0], [2 * 0.5 * math.cos(0.4), 0.5]]  # the elbow, the hand
    np.testing.assert_allclose(arm.lever_arms(joints)[-2:], expected, atol=1e-9)
    swapped = ArmShape(MJCF, NAMES[1::-1])
    np.testing.assert_allclose(swapped.lever_arms(joints[::-1])[-1], expected[-1][::-1], atol=1e-9)


def test_distances_are_between_surfaces() -> None:
    point = np.array([[[1.5, 0.0, 0.0], [1.5, 0.0, 1.0]]])
    assert shape().distance(np.zeros(2), point, np.array([0.2]), thickness=0.1) == pytest.approx(0.2)
    assert shape().distance(np.zeros(2), point - [0.4, 0.0, 0.0], np.array([0.2]), thickness=0.1) == 0.0


def test_the_protective_distance_is_that_of_the_equation() -> None:
    arm = BrakingArm(bench_limits(), shape(), period_s=PERIOD_S)
    braking = arm.braking(arm.shape.lever_arms(np.zeros(2)), np.array([1.0, 0.4]))
    speed, slow, build_up = 1.0 * 1.0 + 0.4 * 0.5, max(1.0 / 16.0, 0.4 / 8.0), 16.0 / 6000.0 + PERIOD_S
    assert braking.speed_mps == pytest.approx(speed)
    assert braking.seconds == pytest.approx(slow + build_up)
    assert braking.metres == pytest.approx(speed * (slow / 2 + build_up))
    reaction = 0.1 + 0.2 + 2 * PERIOD_S
    expected = 0.5 + 0.1 + 1.6 * (reaction + slow + build_up) + speed * reaction + speed * (slow / 2 + build_up)
    assert rule().protective_distance(braking) == pytest.approx(expected)


@pytest.mark.parametrize("duration_s", [0.1, 0.35, 0.6])
def test_the_filter_brakes_no_longer_than_the_rule_says(duration_s: float) -> None:
    rig = Rig()
    rig.drive((1.6, -0.7, 0.04), duration_s)
    rates, start = np.abs(rig.outputs[-1].velocities[:2]), rig.position[:2].copy()
    arm = BrakingArm(rig.limits, shape(), period_s=PERIOD_S)
    # It may still speed up within the period in which it starts to brake.
    told = arm.braking(arm.shape.lever_arms(start), rates + np.array(rig.limits.acceleration[:2]) * PERIOD_S)
    rig.filter.fault("told to stop")
    begin = len(rig.outputs)
    rig.tick(60)
    moved = np.abs(np.diff(rig.trace(begin)[:, :2], axis=0)).max(axis=1) > 0
    assert (1 + np.flatnonzero(moved).max(initial=0)) * PERIOD_S <= told.seconds + PERIOD_S
    hands = [shape().segments(joints)[-1, 1] for joints in (start, rig.position[:2])]
    assert np.linalg.norm(hands[1] - hands[0]) <= told.metres


def test_the_arm_may_have_the_speed_that_just_fits() -> None:
    watched = rule()
    arm = BrakingArm(bench_limits(), shape(), period_s=PERIOD_S)
    levers = arm.shape.lever_arms(np.zeros(2))
    scales = []
    for index, distance in enumerate(np.linspace(4.0, 1.3, 28)):
        watched.hear_distance(distance, NOW + index)
        judged = watched.judge(NOW + index)
        assert not judged.reason
        scales.append(judged.scale)
        if 0 < judged.scale < 1:
            allowed = arm.braking(levers, judged.scale * arm.velocity)
            assert watched.protective_distance(allowed) == pytest.approx(distance - SETTINGS.hysteresis_m)
    assert scales[0] == 1.0 and scales == sorted(scales, reverse=True) and scales[-1] < 0.1


def test_a_fast_arm_is_held_from_further_away() -> None:
    watched = rule()
    watched.hear_distance(1.6, NOW)
    assert not watched.judge(NOW).reason
    watched.hear_arm(np.zeros(2), np.array([2.0, 1.0]), NOW)
    assert "person at 1.60 m" in watched.judge(NOW).reason


# -- what makes it hold -----------------------------------------------------------------------------------------------------


def test_nothing_heard_holds() -> None:
    made = Separation(SETTINGS)
    assert "arm is not known" in made.judge(NOW).reason
    made.meet(BrakingArm(bench_limits(), shape(), period_s=PERIOD_S))
    assert "joints are not known" in made.judge(NOW).reason
    made.hear_arm(np.zeros(2), np.zeros(2), NOW)
    assert "no distance" in made.judge(NOW).reason
    assert made.report("separation", made.judge(NOW)).judged_stamp_ns is None
    made.hear_distance(FAR, NOW)
    assert made.judge(NOW).reason == "" and made.judge(NOW).scale == 1.0


@pytest.mark.parametrize("distance", [math.nan, math.inf, -math.inf, -0.01])
def test_a_distance_that_is_none_holds_until_one_comes(distance: float) -> None:
    watched = rule()
    watched.hear_distance(FAR, NOW)
    assert not watched.judge(NOW).reason
    watched.hear_distance(distance, NOW + 1)
    judged = watched.judge(NOW + 1)
    assert "valid: finite" in judged.reason and judged.scale == 0.0
    watched.hear_distance(FAR, NOW + 2)
    assert not watched.judge(NOW + 2).reason


def test_distances_that_stop_or_come_from_the_future_hold() -> None:
    watched = rule()
    watched.hear_distance(FAR, NOW)
    assert not watched.judge(seconds(0.19)).reason
    watched.hear_arm(np.zeros(2), np.zeros(2), seconds(0.21))
    assert "0.21 s old" in watched.judge(seconds(0.21)).reason
    watched.hear_distance(FAR, seconds(0.5))
    assert "-0.29 s old" in watched.judge(seconds(0.21)).reason


def test_a_distance_out_of_order_holds() -> None:
    watched = rule()
    watched.hear_distance(FAR, seconds(0.05))
    for sent in (0.04, 0.05):
        watched.hear_distance(FAR, seconds(sent))
        assert "valid: in order" in watched.judge(seconds(0.05)).reason
    watched.hear_distance(FAR, seconds(0.06))
    assert not watched.judge(seconds(0.06)).reason


def test_order_is_told_by_the_senders_clock_where_stamps_are_coarse() -> None:
    watched = rule()
    watched.hear_distance(FAR, NOW, sent_ns=1)
    watched.hear_distance(FAR, NOW, sent_ns=2)
    assert not watched.judge(NOW).reason


def test_two_senders_hold_and_another_may_follow_one_that_fell_silent() -> None:
    watched = rule()
    watched.hear_distance(FAR, NOW, sender="a")
    watched.hear_distance(FAR, seconds(0.1), sender="b", sent_ns=4)
    assert "2 senders, a, b; valid: one" in watched.judge(seconds(0.1)).reason
    watched.hear_arm(np.zeros(2), np.zeros(2), seconds(0.3))
    watched.hear_distance(FAR, seconds(0.3), sender="b", sent_ns=5)
    assert not watched.judge(seconds(0.3)).reason


@pytest.mark.parametrize("behind_s", [0.0, 1.0, -1.0])
@pytest.mark.parametrize("near", [0.1, math.nan])
def test_two_senders_hold_as_long_as_both_speak(near: float, behind_s: float) -> None:
    """One is far, the other near or broken, its clock right or wrong; they take turns, and no message of the first ends the hold."""
    watched = rule()
    watched.hear_distance(FAR, NOW, sender="a")
    assert not watched.judge(NOW).reason
    for turn in range(1, 80):
        now = seconds(0.025 * turn)
        watched.hear_arm(np.zeros(2), np.zeros(2), now)
        if turn % 2:
            watched.hear_distance(near, now - round(behind_s * 1e9), sender="b", now_ns=now)
        else:
            watched.hear_distance(FAR, now, sender="a")
        assert watched.judge(now).reason, f"turn {turn}"
    for later in (0.1, 0.2, 0.25):
        now = seconds(0.025 * 79 + later)
        watched.hear_arm(np.zeros(2), np.zeros(2), now)
        watched.hear_distance(FAR, now, sender="a")
    assert not watched.judge(now).reason


def test_an_arm_that_is_not_measured_holds() -> None:
    watched = rule()
    for late in (0.0, 0.1, 0.2, 0.3):
        watched.hear_distance(FAR, seconds(late))
    assert "joints are 0.30 s old" in watched.judge(seconds(0.3)).reason
    watched.hear_arm(np.zeros(2), np.array([0.0, math.nan]), seconds(0.3))
    assert "not finite" in watched.judge(seconds(0.3)).reason
    watched.meet(BrakingArm(bench_limits(), shape(), period_s=PERIOD_S))
    assert "joints are not known" in watched.judge(seconds(0.3)).reason


def test_a_hold_ends_further_away_than_it_began() -> None:
    watched = rule()
    watched.hear_distance(FAR, NOW)
    assert not watched.judge(NOW).reason
    standing = watched.protective_distance(BrakingArm(bench_limits(), shape(), period_s=PERIOD_S).braking(np.ones((1, 2)), np.zeros(2)))
    held = []
    for index, distance in enumerate((standing - 0.01, standing + 0.1, standing + 0.2, standing + 0.1)):
        watched.hear_distance(distance, NOW + 1 + index)
        held.append(bool(watched.judge(NOW + 1 + index).reason))
    assert held == [True, True, False, False]


def test_a_hold_ends_when_nothing_has_called_for_it_for_the_restart_delay() -> None:
    watched = rule(dataclasses.replace(SETTINGS, restart_delay_s=0.5))

    def held(at: float, distance: float) -> str:
        watched.hear_arm(np.zeros(2), np.zeros(2), seconds(at))
        watched.hear_distance(distance, seconds(at))
        judged = watched.judge(seconds(at))
        assert bool(judged.reason) == (judged.scale == 0.0)
        return judged.reason

    assert held(0.0, FAR) == "clear for 0.00 s, motion goes on after 0.5 s"
    assert "clear for 0.40 s" in held(0.4, FAR)
    assert "person at 0.20 m" in held(0.41, 0.2)  # counts anew from here
    assert "clear for 0.00 s" in held(0.5, FAR)
    assert "clear for 0.49 s" in held(0.99, FAR)
    assert held(1.0, FAR) == "" and held(1.1, FAR) == ""
    assert "valid: finite" in held(1.2, math.nan)
    assert "clear for 0.00 s" in held(1.3, FAR)


def test_a_clock_that_goes_back_counts_anew() -> None:
    watched = rule(dataclasses.replace(SETTINGS, restart_delay_s=0.1))
    reasons = []
    for at in (0.05, 0.0, 0.08, 0.1):
        watched.hear_arm(np.zeros(2), np.zeros(2), seconds(at))
        watched.hear_distance(FAR, seconds(at), sent_ns=len(reasons))
        reasons.append(watched.judge(seconds(at)).reason)
    assert ["clear" in reason for reason in reasons] == [True, True, True, False]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("limit_m", 0.0),
        ("error_m", math.nan),
        ("error_m", -0.1),
        ("latency_s", math.nan),
        ("person_mps", math.inf),
        ("max_age_s", 0.0),
        ("restart_delay_s", -0.1),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(field: str, value: float) -> None:
    with pytest.raises(SeparationError, match=f"{field}: .*valid"):
        dataclasses.replace(SETTINGS, **{field: value})
