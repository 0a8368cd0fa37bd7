"""An arm beside a person over time: how near they truly were, what the guard heard and said, how fast the arm was; and its figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

STANDS_RADPS = 0.01
"""A joint that is measured slower stands, for servos tremble; in a bag also one that is sent slower: where a driver is late, what is sent
is set to where the arm is, by a hair."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SeparationTrace:
    """T control periods.

    Attributes:
        seconds: (T,) of their starts.
        distance_m: (T,) true, between surfaces.
        heard_m: (T,) the newest distance that the guard was told; NaN before the first.
        speed: (T,) of the fastest joint of what was sent, rad/s; 0 where it is to stand.
        measured_speed: (T,) of the fastest joint as it was measured, rad/s.
        scale: (T,) share of the velocity limits that the guard allowed.
        held: (T,) whether the guard held the arm.
        begin_ns: source time of second 0.
    """

    seconds: Array
    distance_m: Array
    heard_m: Array
    speed: Array
    measured_speed: Array
    scale: Array
    held: NDArray[np.bool_]
    begin_ns: int = 0

    @property
    def holds(self) -> list[tuple[int, int]]:
        """Begin and end of each hold, as periods."""
        edges = np.flatnonzero(np.diff(self.held.astype(np.int8), prepend=0, append=0))
        return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]


def figures(trace: SeparationTrace, limit_m: float, trigger_m: Array | None = None) -> dict[str, float | int | None]:
    """What a trace shows; the true distance judges.

    Args:
        trace: whole.
        limit_m: so near nothing may move.
        trigger_m: (T,) distance below which the guard had to hold, had it known the true one; for `false_holds`.

    Returns:
        `violations`: control periods within the limit in which motion was sent or measured, and `violation_s`; `measured_violations`:
        those of them in which it was measured; `within_s`: how long they were within the limit; `least_moving_m`: least distance at which
        the arm moved; `holds`; `stop_s_max`: longest time from a hold's begin until what was sent stood; `unstopped_holds`: those in
        which it never did, which count with their whole length; `stop_distance_m_min`: least distance at which it stood, and of those
        the least in the hold; `held_percent`, `moving_percent` of the time;
        `heard_error_m_95`: what was heard is at most so much above the true distance in 95 of 100 periods; with `trigger_m` also
        `false_holds`, those begun with the person beyond it, and `false_hold_percent` of the time.
    """
    step = float(np.median(np.diff(trace.seconds)))
    sent, measured = trace.speed > 0, trace.measured_speed >= STANDS_RADPS
    moving, within = sent | measured, trace.distance_m < limit_m
    stops = [_stop(sent, begin, end) for begin, end in trace.holds]
    lasted = [step * ((end if stop is None else stop) - begin) for (begin, end), stop in zip(trace.holds, stops, strict=True)]
    nearest = [
        float(trace.distance_m[begin:end].min() if stop is None else trace.distance_m[stop])
        for (begin, end), stop in zip(trace.holds, stops, strict=True)
    ]
    heard = np.isfinite(trace.heard_m)
    found: dict[str, float | int | None] = {
        "violations": int((moving & within).sum()),
        "violation_s": step * int((moving & within).sum()),
        "measured_violations": int((measured & within).sum()),
        "within_s": step * int(within.sum()),
        "least_moving_m": float(trace.distance_m[moving].min()) if moving.any() else None,
        "holds": len(trace.holds),
        "stop_s_max": max(lasted, default=None),
        "unstopped_holds": sum(stop is None for stop in stops),
        "stop_distance_m_min": min(nearest, default=None),
        "held_percent": 100.0 * float(trace.held.mean()),
        "moving_percent": 100.0 * float(moving.mean()),
        "heard_error_m_95": float(np.quantile((trace.heard_m - trace.distance_m)[heard], 0.95)) if heard.any() else None,
    }
    if trigger_m is not None:
        beyond = trace.distance_m >= trigger_m
        found["false_holds"] = sum(bool(beyond[begin]) for begin, _ in trace.holds)
        found["false_hold_percent"] = 100.0 * float((trace.held & beyond).mean())
    return found


def _stop(sent: NDArray[np.bool_], begin: int, end: int) -> int | None:
    """The first period of a hold in which no motion is sent."""
    standing = np.flatnonzero(~sent[begin:end])
    return begin + int(standing[0]) if len(standing) else None
