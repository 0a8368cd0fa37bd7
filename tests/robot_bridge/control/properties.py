"""What the command filter must do, one function a property. `test_filter_properties` runs each on the filter,
`test_broken_filter` on one with the check behind it disabled, where each must fail."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from robot_bridge.control.holds import GuardReport
from tests.robot_bridge.control.rig import PERIOD_S, SENDER, Rig, bench_limits, planar

PROPERTIES: dict[str, Callable[[], None]] = {}


def prop(check: Callable[[], None]) -> Callable[[], None]:
    PROPERTIES[check.__name__] = check
    return check


def refused(rig: Rig, reason: str, **command: object) -> None:
    """A moving arm is sent something bad: it is refused with `reason`, counted, and the arm brakes and holds, never half-moves."""
    rig.drive()
    before = rig.filter.counts[reason]
    refusal = rig.send(**command)
    assert refusal is not None and refusal.reason == reason and refusal.detail
    assert rig.filter.counts[reason] == before + 1 and rig.filter.last_refusal == refusal
    first = len(rig.outputs)
    assert rig.tick().state == "holding"
    stands_within_bound(rig, first)


def stands_within_bound(rig: Rig, first: int) -> None:
    """From output `first` on the output is constant after at most v/a_stop + a_stop/j_stop + 1 period, and stays so."""
    limits = rig.limits
    velocity = np.abs((rig.trace()[first - 1] - rig.trace()[first - 2]) / PERIOD_S)
    bound = float(np.max(velocity / limits.stop_acceleration + np.array(limits.stop_acceleration) / limits.stop_jerk)) + PERIOD_S
    rig.wait(1.0)
    trace = rig.trace(first)
    moving = np.flatnonzero(np.any(np.diff(trace, axis=0) != 0, axis=1))
    last_change_s = (moving[-1] + 1) * PERIOD_S if len(moving) else 0.0
    assert last_change_s <= bound + 1e-9, f"still moving {last_change_s} s after, bound {bound}"


# -- refusals -----------------------------------------------------------------------------------------------------------


@prop
def not_finite_is_refused() -> None:
    for bad in (math.nan, math.inf, -math.inf):
        refused(Rig(), "not_finite", positions=(0.1, bad, 0.04))
    refused(Rig(), "not_finite", positions=(0.1, 0.1, 0.04), times=(math.nan,))


@prop
def unknown_name_is_refused() -> None:
    refused(Rig(), "unknown_name", positions=(0.3, 0.1, 0.04, 0.1), names=("shoulder", "elbow", "gripper", "tail"))


@prop
def missing_name_is_refused() -> None:
    refused(Rig(), "missing_name", positions=(0.3, 0.1), names=("shoulder", "gripper"))


@prop
def duplicate_name_is_refused() -> None:
    refused(Rig(), "duplicate_name", positions=(0.3, 0.1, 0.1, 0.04), names=("shoulder", "elbow", "elbow", "gripper"))


@prop
def malformed_is_refused() -> None:
    for bad in ({"times": (0.1, 0.2)}, {"times": (0.0,)}, {"times": (-0.1,)}):
        refused(Rig(), "malformed", positions=(0.3, 0.1, 0.04), **bad)
    refused(Rig(), "malformed", positions=[(0.3, 0.1, 0.04)] * 2, times=(0.2, 0.1))


@prop
def stamp_outside_window_is_refused() -> None:
    refused(Rig(max_observation_age_s=60.0), "stamp_outside_window", positions=(0.3, 0.1, 0.04), age_s=5.01)
    refused(Rig(max_observation_age_s=60.0), "stamp_outside_window", positions=(0.3, 0.1, 0.04), age_s=-5.01)


@prop
def stamp_older_than_the_last_is_refused() -> None:
    refused(Rig(), "stamp_older_than_last", positions=(0.3, 0.1, 0.04), age_s=0.15)


@prop
def an_old_observation_is_refused() -> None:
    rig = Rig(max_observation_age_s=0.2)
    assert rig.send((0.1, 0.1, 0.04), age_s=0.199) is None
    refusal = rig.send((0.1, 0.1, 0.04), age_s=0.201)
    assert refusal is not None  # also older than the last
    rig = Rig(max_observation_age_s=0.2)
    refusal = rig.send((0.1, 0.1, 0.04), age_s=0.201)
    assert refusal is not None and refusal.reason == "observation_too_old"
    assert rig.tick().state == "holding"


@prop
def a_chunks_points_are_judged_by_age_minus_offset() -> None:
    rig = Rig(max_observation_age_s=0.2)
    stamp_age = 0.02
    for sent in range(12):  # 0.6 s on one observation
        refusal = rig.send((0.02 * sent, 0.0, 0.04), age_s=stamp_age, offset_s=0.05 * sent)
        assert refusal is None, refusal
        rig.tick(5)
        stamp_age += 0.05
    # the same observation without its offset is too old, and so is one whose offset stands still
    refusal = rig.send((0.2, 0.0, 0.04), age_s=stamp_age, offset_s=0.3)
    assert refusal is not None and refusal.reason == "observation_too_old"


@prop
def a_chunk_cannot_claim_to_be_older_than_its_observation() -> None:
    rig = Rig(max_observation_age_s=0.2)
    refusal = rig.send((0.1, 0.0, 0.04), age_s=0.5, offset_s=1.5)
    assert refusal is not None and refusal.reason == "observation_too_old"
    rig = Rig(max_observation_age_s=0.2, max_chunk_s=2.0)
    refusal = rig.send((0.1, 0.0, 0.04), age_s=2.5, offset_s=2.45)
    assert refusal is not None and refusal.reason == "observation_too_old"


@prop
def a_far_target_is_refused() -> None:
    rig = Rig()
    rig.drive()
    far = rig.position + (0.51, 0.0, 0.0)
    refused(Rig(), "max_lead", positions=far + 0.3)
    # in a chunk: also a far step between two points
    rig = Rig()
    assert rig.reason([(0.1, 0.0, 0.04), (0.7, 0.0, 0.04)], times=(0.1, 0.2)) == "max_lead"
    assert rig.send([(0.1, 0.0, 0.04), (0.5, 0.0, 0.04)], times=(0.1, 0.2)) is None


@prop
def a_refused_command_never_half_moves() -> None:
    rig = Rig()
    good, bad = (0.1, 0.1, 0.04), (0.2, math.nan, 0.04)
    assert rig.reason([good, bad], times=(0.1, 0.2)) == "not_finite"
    rig.wait(0.5)
    assert (rig.trace() == (0.0, 0.0, 0.04)).all()


# -- authority ----------------------------------------------------------------------------------------------------------


@prop
def only_the_holder_of_authority_moves_the_arm() -> None:
    rig = Rig()
    rig.drive()
    refusal = rig.send((0.0, 0.0, 0.04), sender="gid-2")
    assert refusal is not None and refusal.reason == "no_authority" and rig.filter.counts["no_authority"] == 1
    assert rig.tick().state == "moving"  # the holder is not disturbed by others
    rig = Rig()
    rig.filter.authority.revoke()
    assert rig.reason((0.1, 0.0, 0.04)) == "no_authority"
    rig.wait(0.3)
    assert (rig.trace() == (0.0, 0.0, 0.04)).all()


@prop
def a_take_over_goes_through_a_hold_and_a_bumpless_start() -> None:
    rig = Rig()
    rig.drive()
    assert rig.filter.authority.take("teleop", rig.now_ns, "gid-2") is None
    first = len(rig.outputs)
    refusal = rig.send((0.0, 0.0, 0.04), sender="gid-2", source="teleop")
    assert refusal is not None and refusal.reason == "not_at_rest"
    rig.tick()
    assert rig.outputs[-1].state == "holding"
    stands_within_bound(rig, first)
    assert rig.send(rig.position + (0.1, 0.0, 0.0), sender="gid-2", source="teleop") is None
    rig.tick(10)
    velocity, acceleration, jerk = rig.rates(first - 5)
    assert (velocity <= np.array(rig.limits.velocity) * (1 + 1e-6)).all()
    assert (acceleration <= np.array(rig.limits.stop_acceleration) * (1 + 1e-6)).all()
    assert (jerk <= np.array(rig.limits.stop_jerk) * (1 + 1e-6)).all()
    assert rig.outputs[-1].state == "moving"


# -- limits -------------------------------------------------------------------------------------------------------------


def _hard_run() -> Rig:
    rig = Rig(limits=bench_limits(max_lead=(3.0, 3.0, 0.1)), policy_period_s=0.4, ramp_s=0.05)
    for goal in ((1.5, -1.0, 0.08), (-1.0, 1.0, 0.0)):
        assert rig.send(goal, times=(0.8,)) is None
        rig.wait(0.79)
    return rig


@prop
def velocity_is_limited_and_counted() -> None:
    rig = _hard_run()
    assert (rig.rates()[0] <= np.array(rig.limits.velocity) * (1 + 1e-6)).all()
    assert rig.rates()[0][1] > 0.95  # and the limit is used
    assert rig.filter.counts["velocity"] > 0


@prop
def acceleration_is_limited_and_counted() -> None:
    rig = _hard_run()
    assert (rig.rates()[1] <= np.array(rig.limits.acceleration) * (1 + 1e-6)).all()
    assert rig.filter.counts["acceleration"] > 0


@prop
def jerk_is_limited_and_counted() -> None:
    limits = bench_limits(jerk=(100.0, 100.0, 50.0))
    rig = Rig(limits=limits)
    rig.stream((0.05, 0.0, 0.04), 0.5)
    rig.stream((0.0, 0.05, 0.04), 0.5)
    assert (rig.rates()[2] <= np.array(limits.jerk) * (1 + 1e-6)).all()
    assert rig.filter.counts["jerk"] > 0


@prop
def speed_scale_is_limited_and_counted() -> None:
    rig = Rig()
    for _ in range(40):
        rig.filter.speed_scale.receive(0.25, "guard", rig.now_ns)
        rig.stream((1.5, -1.0, 0.08), 0.05)
    assert (rig.rates()[0] <= 0.25 * np.array(rig.limits.velocity) * (1 + 1e-6)).all()
    assert rig.rates()[0][1] > 0.2
    assert rig.filter.counts["speed_scale"] > 0


@prop
def position_stops_at_the_boundary_and_is_reported() -> None:
    rig = Rig((1.8, 0.0, 0.04))
    rig.stream((2.3, 0.0, 0.04), 1.0)
    assert rig.trace()[:, 0].max() <= 2.0 + 1e-9
    assert abs(rig.position[0] - 2.0) < 1e-6
    assert "position" in rig.outputs[-1].limited and rig.filter.counts["position"] > 0
    rig.stream((1.7, 0.0, 0.04), 0.5)
    assert rig.position[0] < 1.9  # and it comes back


@prop
def an_arm_outside_its_range_only_comes_back() -> None:
    rig = Rig((2.1, 0.0, 0.04))
    rig.stream((2.4, 0.0, 0.04), 0.5)
    assert rig.trace()[:, 0].max() <= 2.1
    rig.stream((1.9, 0.0, 0.04), 0.6)
    assert rig.position[0] < 2.0
    rig.stream((2.4, 0.0, 0.04), 0.5)
    assert abs(rig.position[0] - 2.0) < 1e-6


@prop
def workspace_stops_at_the_boundary_and_is_reported() -> None:
    rig = Rig((0.0, 1.0, 0.04), limits=bench_limits(workspace_max=(2.0, 0.6, 1.0)))
    rig.stream((0.6, 1.0, 0.04), 1.0)
    heights = np.array([planar(positions[:2])[0][1] for positions in rig.trace()])
    assert heights.max() <= 0.6 + 1e-6
    assert heights.max() > 0.59
    assert "workspace" in rig.outputs[-1].limited and rig.filter.counts["workspace"] > 0
    rig.stream((0.0, 1.0, 0.04), 0.5)
    assert planar(rig.position[:2])[0][1] < 0.5


@prop
def workspace_holds_between_start_and_target_too() -> None:
    """Both ends of a motion lie inside, the arc between them does not."""
    limits = bench_limits(workspace_max=(0.9, 2.0, 1.0), max_lead=(1.5, 1.5, 0.1), max_orientation_step=3.0)
    rig = Rig((-0.6, 0.0, 0.04), limits=limits, policy_period_s=1.0)
    assert rig.send((0.6, 0.0, 0.04), times=(1.5,)) is None
    rig.wait(1.5)
    reach = np.array([planar(positions[:2])[0][0] for positions in rig.trace()])
    assert reach.max() <= 0.9 + 1e-6
    assert rig.filter.counts["workspace"] > 0


@prop
def orientation_step_stops_at_the_boundary_and_is_reported() -> None:
    rig = Rig(limits=bench_limits(max_orientation_step=0.1), policy_period_s=1.0)
    assert rig.send((0.2, 0.2, 0.04), times=(1.0,)) is None
    output = rig.tick()
    assert abs(output.target[0] + output.target[1] - 0.1) < 1e-5
    assert "orientation" in output.limited and rig.filter.counts["orientation"] > 0
    rig.wait(1.2)
    assert rig.trace()[:, :2].sum(axis=1).max() <= 0.1 + 1e-5


@prop
def wrench_stops_motion_and_is_reported() -> None:
    rig = Rig()
    rig.drive()
    rig.wrench = np.array([0.0, 0.0, -25.0, 0.0, 0.0, 0.0])
    first = len(rig.outputs)
    output = rig.tick()
    assert output.state == "holding" and "wrench" in output.reason
    assert rig.reason(rig.position + (0.1, 0.0, 0.0)) == "held"
    stands_within_bound(rig, first)
    assert "wrench" in rig.filter.active_holds(rig.now_ns, rig.source_ns)
    assert rig.filter.clear_hold("wrench", rig.now_ns) is None  # may now be driven off, but pressed no harder
    rig.tick()
    assert rig.send(rig.position) is None
    rig.wrench = np.array([0.0, 0.0, -26.0, 0.0, 0.0, 0.0])
    assert rig.tick().state == "holding"


# -- starts and ends ----------------------------------------------------------------------------------------------------


@prop
def every_start_is_from_the_measured_pose() -> None:
    rig = Rig()
    rig.drive()
    rig.wait(1.0)
    rig.position = rig.position + (0.2, -0.1, 0.0)  # somebody moved the arm while it stood
    here = rig.position.copy()
    assert rig.send(here + (0.1, 0.0, 0.0)) is None
    assert np.abs(rig.tick().positions - here).max() < 1e-3


@prop
def a_start_has_a_ramp() -> None:
    rig = Rig(ramp_s=0.5, limits=bench_limits(max_lead=(3.0, 3.0, 0.1)), policy_period_s=1.0)
    assert rig.send((1.9, 0.0, 0.04), times=(0.9,)) is None
    rig.wait(0.9)
    speed = np.abs(np.diff(rig.trace()[:, 0])) / PERIOD_S
    times = (np.arange(len(speed)) + 1) * PERIOD_S
    allowed = 2.0 * np.minimum(1.0, np.maximum(0.1, times / 0.5))
    assert (speed <= allowed * (1 + 1e-6) + 1e-9).all()
    assert speed.max() > 1.5


@prop
def a_silent_sender_is_dropped_and_the_output_comes_to_rest() -> None:
    rig = Rig()
    rig.drive()
    rig.wait(0.05)  # the last command was valid for two policy periods, one of which is over
    first = len(rig.outputs)
    assert rig.tick(2).state == "holding"
    stands_within_bound(rig, first)
    rig = Rig(max_command_age_s=0.03)
    rig.send((0.2, 0.0, 0.04))
    rig.tick(3)
    assert rig.outputs[-1].state == "moving"
    assert rig.tick().state == "holding"


@prop
def a_commands_last_point_ends_its_validity() -> None:
    rig = Rig()
    rig.send((0.01, 0.0, 0.04), times=(0.04,))
    assert rig.tick(4).state == "moving"
    assert rig.tick().state == "holding"


@prop
def braking_meets_its_bound_and_keeps_its_path() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        rig = Rig()
        goal = rng.uniform(-1.2, 1.2, 3) * (1, 1, 0) + (0, 0, 0.04)
        rig.stream(goal, rng.uniform(0.1, 0.8))
        rig.tick(int(rng.integers(1, 5)))
        rig.filter.holds.receive(GuardReport(name="guard", hold=True), rig.now_ns)
        first = len(rig.outputs)
        direction = np.sign(rig.trace()[first - 1] - rig.trace()[first - 2])
        stands_within_bound(rig, first)
        steps = np.diff(rig.trace(first - 1), axis=0)
        assert (steps * direction >= -1e-4).all()  # it never backs away from where it was going


# -- e-stop, holds, speed scale -----------------------------------------------------------------------------------------


@prop
def e_stop_drops_the_target_within_two_periods() -> None:
    rig = Rig()
    rig.drive()
    rig.filter.estop.receive(True, "button", rig.now_ns)
    first = len(rig.outputs)
    assert rig.tick().state == "stopped"
    assert rig.reason(rig.position) == "no_authority"
    stands_within_bound(rig, first)


@prop
def only_true_stops() -> None:
    rig = Rig()
    rig.drive()
    rig.filter.estop.receive(False, "button", rig.now_ns)
    assert rig.tick().state == "moving"


@prop
def e_stop_stays_until_rearm_and_a_new_authority() -> None:
    rig = Rig()
    rig.drive()
    rig.filter.estop.receive(True, "button", rig.now_ns)
    rig.wait(0.5)
    rig.filter.estop.receive(False, "button", rig.now_ns)
    stood = rig.tick().positions
    for _ in range(40):
        rig.send(stood + (0.1, 0.0, 0.0))
        rig.tick(5)
    assert (rig.position == stood).all()
    assert rig.filter.rearm(rig.now_ns, rig.source_ns) is None
    for _ in range(40):
        assert rig.reason(stood + (0.1, 0.0, 0.0)) == "no_authority"
        rig.tick(5)
    assert (rig.position == stood).all()
    assert rig.filter.authority.take("policy", rig.now_ns, SENDER) is None
    assert rig.send(stood + (0.1, 0.0, 0.0)) is None
    assert rig.tick(5).state == "moving"


@prop
def rearm_is_refused_within_a_second_of_a_press() -> None:
    rig = Rig()
    rig.filter.estop.receive(True, "button", rig.now_ns)
    rig.wait(0.99)
    assert "last second" in str(rig.filter.rearm(rig.now_ns, rig.source_ns))
    rig.tick()
    assert rig.filter.rearm(rig.now_ns, rig.source_ns) is None


@prop
def rearm_is_refused_while_a_hold_is_active() -> None:
    rig = Rig()
    rig.filter.estop.receive(True, "button", rig.now_ns)
    rig.wait(2.0)
    rig.filter.holds.receive(GuardReport(name="guard", hold=True), rig.now_ns)
    assert "guard" in str(rig.filter.rearm(rig.now_ns, rig.source_ns))
    rig.filter.holds.receive(GuardReport(name="guard", hold=False), rig.now_ns)
    assert rig.filter.rearm(rig.now_ns, rig.source_ns) is None


@prop
def a_required_e_stop_that_falls_silent_stops_the_arm() -> None:
    rig = Rig(required_estops=("button",))
    for _ in range(20):
        rig.filter.estop.receive(False, "button", rig.now_ns)
        rig.stream((0.3, 0.0, 0.04), 0.05)
    assert rig.outputs[-1].state == "moving"
    rig.stream((0.0, 0.0, 0.04), 0.9)
    assert rig.outputs[-1].state == "moving"
    rig.stream((0.5, 0.0, 0.04), 0.15)
    assert rig.outputs[-1].state == "stopped" and "button" in rig.outputs[-1].reason
    assert "silent" in str(rig.filter.rearm(rig.now_ns, rig.source_ns))
    rig.filter.estop.receive(False, "button", rig.now_ns)
    assert rig.tick().state == "stopped"  # hearing it again starts nothing
    assert rig.filter.rearm(rig.now_ns, rig.source_ns) is None


@prop
def a_required_guard_must_be_heard() -> None:
    rig = Rig(required_guards=("camera",))
    assert rig.reason((0.1, 0.0, 0.04)) == "held"
    assert "camera" in rig.tick().reason
    rig.filter.holds.receive(GuardReport(name="camera", hold=False), rig.now_ns)
    assert rig.send((0.1, 0.0, 0.04)) is None
    assert rig.tick().state == "moving"
    rig.stream((0.1, 0.0, 0.04), 1.1)
    assert rig.outputs[-1].state == "holding" and "silent" in rig.outputs[-1].reason
    rig.filter.holds.receive(GuardReport(name="camera", hold=False), rig.now_ns)
    rig.stream((0.1, 0.0, 0.04), 0.2)  # after a guard's hold motion may go on by itself
    assert rig.outputs[-1].state == "moving"


@prop
def a_judged_frame_may_not_be_too_old() -> None:
    rig = Rig(required_guards=("camera",))
    fresh = GuardReport(name="camera", hold=False, judged_stamp_ns=rig.source_ns, max_age_s=0.3)
    rig.filter.holds.receive(fresh, rig.now_ns)
    assert rig.send((0.1, 0.0, 0.04)) is None
    rig.wait(0.35)
    rig.filter.holds.receive(fresh, rig.now_ns)  # the guard is alive, but judges an old picture
    assert rig.reason((0.1, 0.0, 0.04)) == "held"
    future = GuardReport(name="camera", hold=False, judged_stamp_ns=rig.source_ns + 10**9, max_age_s=0.3)
    rig.filter.holds.receive(future, rig.now_ns)
    assert rig.reason((0.1, 0.0, 0.04)) == "held"


@prop
def a_guards_hold_outlives_its_silence() -> None:
    rig = Rig()
    rig.drive()
    rig.filter.holds.receive(GuardReport(name="guard", hold=True, message="hand seen"), rig.now_ns)
    assert rig.tick().state == "holding" and "hand seen" in rig.outputs[-1].reason
    assert "alive" in str(rig.filter.clear_hold("guard", rig.now_ns))
    rig.wait(10.0)
    assert rig.reason(rig.position) == "held"
    assert "no hold" in str(rig.filter.clear_hold("somebody", rig.now_ns))
    assert rig.filter.clear_hold("guard", rig.now_ns) is None
    assert rig.send(rig.position) is None
    assert rig.tick().state == "moving"
    rig.filter.holds.receive(GuardReport(name="guard", hold=True), rig.now_ns)
    assert rig.tick().state == "holding"
    rig.filter.holds.receive(GuardReport(name="guard", hold=False), rig.now_ns)
    assert rig.send(rig.position) is None
    assert rig.tick().state == "moving"


@prop
def the_lowest_live_speed_scale_counts() -> None:
    rig = Rig()
    scale = rig.filter.speed_scale
    assert scale.scale(rig.now_ns) == 1.0
    scale.receive(0.8, "a", rig.now_ns)
    scale.receive(0.3, "b", rig.now_ns)
    assert scale.scale(rig.now_ns) == 0.3
    rig.wait(0.6)
    scale.receive(0.8, "a", rig.now_ns)
    rig.wait(0.6)
    assert scale.scale(rig.now_ns) == 0.8  # b is no longer live


@prop
def a_senseless_speed_scale_is_zero() -> None:
    for value in (math.nan, math.inf, -0.1, 1.1):
        rig = Rig()
        rig.drive()
        rig.filter.speed_scale.receive(value, "guard", rig.now_ns)
        rig.stream((1.5, 0.0, 0.04), 0.5)
        assert not rig.outputs[-1].velocities[:2].any()
        assert rig.filter.counts["speed_scale"] > 0


@prop
def required_separation_holds_when_stale() -> None:
    rig = Rig(separation_required=True)
    assert rig.reason((0.1, 0.0, 0.04)) == "held"
    rig.filter.speed_scale.receive(1.0, "guard", rig.now_ns)
    assert rig.send((0.1, 0.0, 0.04)) is None
    rig.stream((0.1, 0.0, 0.04), 1.2)
    assert rig.outputs[-1].state == "holding" and "separation" in rig.outputs[-1].reason


@prop
def a_fault_never_ends_by_itself() -> None:
    rig = Rig()
    rig.drive()
    rig.filter.fault("arm lost")
    assert rig.tick().state == "fault"
    rig.stream((0.5, 0.0, 0.04), 3.0)
    assert rig.outputs[-1].state == "fault" and rig.outputs[-1].reason == "arm lost"
    assert rig.filter.rearm(rig.now_ns, rig.source_ns) is None
    assert rig.reason(rig.position) == "no_authority"
    rig.filter.authority.take("policy", rig.now_ns, SENDER)
    assert rig.send(rig.position) is None


@prop
def a_measured_state_that_is_not_finite_is_a_fault() -> None:
    rig = Rig()
    rig.drive()
    here = rig.position.copy()
    rig.position[0] = math.nan
    output = rig.tick()
    assert output.state == "fault"
    assert np.isfinite(output.positions).all() and np.abs(output.positions - here).max() < 0.05
