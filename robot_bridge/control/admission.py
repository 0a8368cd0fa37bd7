"""Admission: what makes the command filter refuse a command. One function a reason; a refused command never half-moves the arm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_bridge.control.command import JointCommand, Refusal, RefusalReason
from robot_bridge.control.limits import ArmLimits
from robot_bridge.control.names import JointNameError, order_by_name
from robot_bridge.control.settings import FilterSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """What a command is judged against.

    Attributes:
        limits, settings: of the arm.
        source_ns: now, on the clock of stamps.
        last_stamp_ns: newest stamp accepted since the last restart; None if there is none.
        output: (J,) where the arm is being sent now, in the order of `limits.names`.
    """

    limits: ArmLimits
    settings: FilterSettings
    source_ns: int
    last_stamp_ns: int | None
    output: NDArray[np.float64]


def shape(command: JointCommand, situation: Situation) -> str | None:
    """One or more points, one column a name, times increasing and above 0."""
    positions, times = command.positions, command.time_from_start_s
    if positions.ndim != 2 or times.ndim != 1 or len(times) == 0 or positions.shape != (len(times), len(command.names)):
        found = f"positions {positions.shape} for {times.shape} times and {len(command.names)} names"
        return f"{found}, valid: (points, names), at least one point"
    if np.isfinite(times).all() and not (times[0] > 0 and (len(times) == 1 or (np.diff(times) > 0).all())):
        return f"time_from_start {times.tolist()}, valid: above 0 and increasing"
    return None


def finite(command: JointCommand, situation: Situation) -> str | None:
    """Only finite numbers."""
    if np.isfinite(command.positions).all() and np.isfinite(command.time_from_start_s).all() and np.isfinite(command.offset_s):
        return None
    return f"positions {command.positions.tolist()} at {command.time_from_start_s.tolist()}, valid: finite numbers"


def window(command: JointCommand, situation: Situation) -> str | None:
    """A stamp far from now comes from another clock or another time."""
    age_s = (situation.source_ns - command.stamp_ns) / 1e9
    if abs(age_s) <= situation.settings.stamp_window_s:
        return None
    return f"stamp is {age_s:.3f} s old, valid: within {situation.settings.stamp_window_s} s of now"


def order(command: JointCommand, situation: Situation) -> str | None:
    """Stamps never go back; a chunk that is sent again keeps its stamp."""
    if situation.last_stamp_ns is None or command.stamp_ns >= situation.last_stamp_ns:
        return None
    return f"stamp {command.stamp_ns} is older than the last, {situation.last_stamp_ns}"


def observation_age(command: JointCommand, situation: Situation) -> str | None:
    """A point is judged by the age of its observation minus its offset in the chunk; the first point is the oldest."""
    settings = situation.settings
    age_s = (situation.source_ns - command.stamp_ns) / 1e9
    if not 0.0 <= command.offset_s <= min(settings.max_chunk_s, max(age_s, 0.0) + settings.policy_period_s):
        return f"offset {command.offset_s} s into a chunk observed {age_s:.3f} s ago, valid: 0 to that, at most {settings.max_chunk_s} s"
    if age_s - command.offset_s <= settings.max_observation_age_s:
        return None
    return f"observation is {age_s - command.offset_s:.3f} s older than its point, valid: {settings.max_observation_age_s} s"


def lead(command: JointCommand, situation: Situation) -> str | None:
    """No point far from the one before it; the first not far from the current output."""
    limits = situation.limits
    points = command.positions[:, order_by_name(command.names, limits.names)]
    steps = np.abs(np.diff(points, axis=0, prepend=situation.output[None]))
    if (steps <= limits.max_lead).all():
        return None
    worst = int((steps / limits.max_lead).max(axis=0).argmax())
    return f"{limits.names[worst]} is asked to go {steps[:, worst].max():.4f} at once, valid: {limits.max_lead[worst]}"


Check = Callable[[JointCommand, Situation], str | None]
"""Returns None, or what was found and what would be valid."""

CHECKS: dict[RefusalReason, Check] = {
    "not_finite": finite,
    "stamp_outside_window": window,
    "stamp_older_than_last": order,
    "observation_too_old": observation_age,
    "max_lead": lead,
}
"""Reason -> check, in the order they are made, after the names are known to fit."""


def judge(command: JointCommand, situation: Situation) -> Refusal | None:
    """The first reason to refuse `command`, or None."""
    if detail := shape(command, situation):
        return Refusal(reason="malformed", detail=detail)
    try:
        order_by_name(command.names, situation.limits.names)
    except JointNameError as error:
        return Refusal(reason=error.reason, detail=str(error))
    for reason, check in CHECKS.items():
        if detail := check(command, situation):
            return Refusal(reason=reason, detail=detail)
    return None
