"""A filter whose check is disabled must fail the property behind it: no property holds by accident."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from robot_bridge.control import admission, trajectory
from robot_bridge.control.authority import Authority
from robot_bridge.control.boundary import Boundary
from robot_bridge.control.estop import EStop
from robot_bridge.control.filter import CommandFilter
from robot_bridge.control.holds import SILENT_NS, Holds
from robot_bridge.control.names import order_by_name
from robot_bridge.control.output import Output
from robot_bridge.control.speed_scale import SpeedScale
from robot_bridge.control.target import Target
from robot_bridge.control.trajectory import Planner
from robot_bridge.control.wrench import WrenchGuard
from tests.robot_bridge.control.properties import PROPERTIES

Break = Callable[[pytest.MonkeyPatch], None]
BREAKS: dict[str, Break] = {}


def breaks(*properties: str) -> Callable[[Break], Break]:
    def register(disable: Break) -> Break:
        for name in properties:
            BREAKS[name] = disable
        return disable

    return register


def replace(owner: Any, name: str, value: Any) -> Break:
    return lambda patch: patch.setattr(owner, name, value)


def without(*reasons: str) -> Break:
    return replace(admission, "CHECKS", {reason: check for reason, check in admission.CHECKS.items() if reason not in reasons})


def group_limits(**factors: float) -> Break:
    """Plans with other limits than the arm's."""

    def disable(patch: pytest.MonkeyPatch) -> None:
        original = trajectory._Group.__init__

        def init(self: Any, *arguments: Any) -> None:
            original(self, *arguments)
            for name, factor in factors.items():
                inputs, field = name.split("_", 1)
                limits = getattr(getattr(self, inputs), field)
                setattr(getattr(self, inputs), field, [limit * factor for limit in limits])

        patch.setattr(trajectory._Group, "__init__", init)

    return disable


def careless_order(found: Any, wanted: Any) -> list[int]:
    return [list(found).index(name) if name in found else 0 for name in wanted]


def no_boundary(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Boundary, "clamp", lambda self, point, output: (point, False))
    patch.setattr(Boundary, "contain", lambda self, point, start: (point, None))
    patch.setattr(Boundary, "crossed", lambda self, output, *positions: None)


BREAKS |= {
    "not_finite_is_refused": without("not_finite"),
    "unknown_name_is_refused": replace(admission, "order_by_name", lambda found, wanted: order_by_name(found, wanted, allow_more=True)),
    "missing_name_is_refused": replace(admission, "order_by_name", careless_order),
    "duplicate_name_is_refused": replace(admission, "order_by_name", careless_order),
    "malformed_is_refused": replace(admission, "shape", lambda command, situation: None),
    "stamp_outside_window_is_refused": without("stamp_outside_window"),
    "stamp_older_than_the_last_is_refused": without("stamp_older_than_last"),
    "an_old_observation_is_refused": without("observation_too_old"),
    "a_far_target_is_refused": without("max_lead"),
    "a_refused_command_never_half_moves": without("not_finite", "max_lead"),
    "only_the_holder_of_authority_moves_the_arm": replace(Authority, "check", lambda self, source, sender, now_ns: None),
    "a_take_over_goes_through_a_hold_and_a_bumpless_start": replace(CommandFilter, "_follow_authority", lambda self: None),
    "acceleration_is_limited_and_counted": group_limits(move_max_acceleration=10.0),
    "jerk_is_limited_and_counted": group_limits(move_max_jerk=10.0),
    "speed_scale_is_limited_and_counted": replace(SpeedScale, "scale", lambda self, now_ns: 1.0),
    "position_stops_at_the_boundary_and_is_reported": no_boundary,
    "an_arm_outside_its_range_only_comes_back": no_boundary,
    "workspace_stops_at_the_boundary_and_is_reported": no_boundary,
    "workspace_holds_between_start_and_target_too": replace(Boundary, "crossed", lambda self, output, *positions: None),
    "orientation_step_stops_at_the_boundary_and_is_reported": no_boundary,
    "wrench_stops_motion_and_is_reported": replace(WrenchGuard, "measure", lambda self, wrench: None),
    "a_start_has_a_ramp": replace(Output, "_speed", lambda self, at_ns, scale: scale),
    "braking_meets_its_bound_and_keeps_its_path": group_limits(stop_max_acceleration=0.25),
    "e_stop_drops_the_target_within_two_periods": replace(EStop, "stopped", lambda self, now_ns: None),
    "rearm_is_refused_within_a_second_of_a_press": replace(EStop, "rearm", lambda self, now_ns, holds=(): None),
    "a_required_e_stop_that_falls_silent_stops_the_arm": replace(EStop, "_silent", lambda self, now_ns: []),
    "a_required_guard_must_be_heard": replace(Holds, "_missing", lambda self, name, now_ns, source_ns: None),
    "the_lowest_live_speed_scale_counts": replace(
        SpeedScale, "scale", lambda self, now_ns: max((value for value, _ in self._values.values()), default=1.0)
    ),
    "required_separation_holds_when_stale": replace(SpeedScale, "hold", lambda self, now_ns: None),
    "a_fault_never_ends_by_itself": replace(CommandFilter, "fault", lambda self, reason: None),
}


@breaks("a_chunks_points_are_judged_by_age_minus_offset")
def age_without_offset(patch: pytest.MonkeyPatch) -> None:
    original = admission.observation_age
    patch.setitem(admission.CHECKS, "observation_too_old", lambda command, now: original(dataclasses.replace(command, offset_s=0.0), now))


@breaks("a_chunk_cannot_claim_to_be_older_than_its_observation")
def any_offset(patch: pytest.MonkeyPatch) -> None:
    def check(command: Any, now: admission.Situation) -> str | None:
        return "old" if (now.source_ns - command.stamp_ns) / 1e9 - command.offset_s > now.settings.max_observation_age_s else None

    patch.setitem(admission.CHECKS, "observation_too_old", check)


@breaks("velocity_is_limited_and_counted")
def any_speed(patch: pytest.MonkeyPatch) -> None:
    original = Planner.move
    patch.setattr(Planner, "move", lambda self, *arguments, **options: original(self, *arguments, **(options | {"speed": 100.0})))
    patch.setattr(Boundary, "reach", lambda self, point, start, seconds, speed: (point, False))


@breaks("every_start_is_from_the_measured_pose")
def start_where_it_was(patch: pytest.MonkeyPatch) -> None:
    original = Output.restart

    def restart(self: Output, position: np.ndarray, now_ns: int) -> None:
        stood = hasattr(self, "motion") and any(self.motion.position)
        original(self, np.array(self.motion.position) if stood else position, now_ns)

    patch.setattr(Output, "restart", restart)


def _expiring(patch: pytest.MonkeyPatch, seconds: float) -> None:
    original = Target.through.__func__  # type: ignore[attr-defined]

    def through(cls: type[Target], points: Any, start: Any, times_s: Any, *, from_ns: int, valid_s: float) -> Target:
        target = original(cls, points, start, times_s, from_ns=from_ns, valid_s=valid_s)
        return dataclasses.replace(target, expires_ns=from_ns + round(seconds * 1e9))

    patch.setattr(Target, "through", classmethod(through))


@breaks("a_silent_sender_is_dropped_and_the_output_comes_to_rest")
def never_expires(patch: pytest.MonkeyPatch) -> None:
    _expiring(patch, 1e6)


@breaks("a_commands_last_point_ends_its_validity")
def outlives_its_last_point(patch: pytest.MonkeyPatch) -> None:
    _expiring(patch, 0.1)


@breaks("only_true_stops")
def false_stops_too(patch: pytest.MonkeyPatch) -> None:
    original = EStop.receive
    patch.setattr(EStop, "receive", lambda self, pressed, sender, now_ns: original(self, True, sender, now_ns))


@breaks("e_stop_stays_until_rearm_and_a_new_authority")
def a_release_rearms(patch: pytest.MonkeyPatch) -> None:
    original = EStop.receive

    def receive(self: EStop, pressed: bool, sender: str, now_ns: int) -> None:
        original(self, pressed, sender, now_ns)
        if not pressed:
            self._reason = None

    patch.setattr(EStop, "receive", receive)
    patch.setattr(Authority, "revoke", lambda self: None)


@breaks("rearm_is_refused_while_a_hold_is_active")
def rearm_ignores_holds(patch: pytest.MonkeyPatch) -> None:
    original = EStop.rearm
    patch.setattr(EStop, "rearm", lambda self, now_ns, holds=(): original(self, now_ns))


@breaks("a_judged_frame_may_not_be_too_old")
def frames_are_not_judged(patch: pytest.MonkeyPatch) -> None:
    original = Holds.receive
    patch.setattr(Holds, "receive", lambda self, report, now_ns: original(self, dataclasses.replace(report, judged_stamp_ns=None), now_ns))


@breaks("a_guards_hold_outlives_its_silence")
def silence_ends_a_hold(patch: pytest.MonkeyPatch) -> None:
    original = Holds.active

    def active(self: Holds, now_ns: int, source_ns: int) -> dict[str, str]:
        return {name: why for name, why in original(self, now_ns, source_ns).items() if now_ns - self._heard_ns.get(name, 0) <= SILENT_NS}

    patch.setattr(Holds, "active", active)


@breaks("a_senseless_speed_scale_is_zero")
def senseless_is_full_speed(patch: pytest.MonkeyPatch) -> None:
    def receive(self: SpeedScale, value: float, sender: str, now_ns: int) -> None:
        self._values[sender] = (value if 0.0 <= value <= 1.0 else 1.0, now_ns)

    patch.setattr(SpeedScale, "receive", receive)


@breaks("a_measured_state_that_is_not_finite_is_a_fault")
def measured_is_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CommandFilter, "_measure", lambda self, measured: setattr(self._reading, "newest", measured.positions))


def test_every_property_has_its_break() -> None:
    assert set(BREAKS) == set(PROPERTIES)


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_filter_without_the_check_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BREAKS[name](monkeypatch)
    with pytest.raises(AssertionError):
        PROPERTIES[name]()
