"""Judges what left the command filter after a fault, by the bounds of docs/reference/command-filter.md.

Times are told in seconds and judged in outputs of the control loop: a loop that a busy machine keeps from running sends nothing either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from robot_bridge.control.limits import ArmLimits
from robot_bridge.control.loop import STALL_PERIODS
from robot_bridge.control.settings import FilterSettings
from robot_bridge.faults.trace import Injection, Mark, Trace

DROP_PERIODS = 2
_BEFORE_S = 0.3  # the arm must have been in even motion for this long
_EVEN = 0.95  # share of the step before that a step of an output that does not brake is at least
_SPEEDING_UP = 1  # outputs for which a joint that speeds up when braking begins may still gain speed: less than a control period
_SLOW = 0.25  # share of the sweep's speed below which nothing is followed
_ASIDE = 0.25  # rad: a standing arm further from its output does not start
_BEHIND = 0.1  # rad an arm may have stayed behind what was sent to it when it was lost
_BACK = 1e-4  # rad against the sweep in a period, which braking never makes
_OUTSIDE = 0.01  # rad by which an arm may be found outside of its range, where the output then starts
_ON_THE_WAY = 2  # commands that were made before the fault, or from readings before it
_UNMOVED = 0.003  # rad by which joints that are not swept may move


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One fault on one arm. `None`: not met.

    Attributes:
        fault: its name.
        dropped_s: from the fault to the first output that no longer follows the sender.
        constant_s: from the fault to constant output.
        bound_s: within which the rules want constant output, after the event the fault shows itself by.
        step: largest step of an arm joint between two outputs after the fault, rad.
        velocity: likewise, rad/s.
        of_limit: largest share of a velocity limit.
        resumed: the output moved where it may not.
        problems: what broke the rules; none for a green cell.
    """

    fault: str
    dropped_s: float | None
    constant_s: float | None
    bound_s: float | None
    step: float
    velocity: float
    of_limit: float
    resumed: bool
    problems: tuple[str, ...]


def judge(trace: Trace, injection: Injection, limits: ArmLimits, settings: FilterSettings) -> Cell:
    """The cell of one injection.

    Raises:
        ValueError: the trace does not reach over the injection.
    """
    return _Judge(trace, injection, limits, settings).cell()


class _Judge:
    def __init__(self, trace: Trace, injection: Injection, limits: ArmLimits, settings: FilterSettings) -> None:
        stamps = trace.stamps_ns
        inside = (stamps > injection.injected_ns - _BEFORE_S * 1e9) & (stamps <= injection.closed_ns)
        self._stamps, self._positions = stamps[inside], trace.positions[inside]
        self._first = int(np.searchsorted(self._stamps, injection.injected_ns, side="right"))
        self._end = int(np.searchsorted(self._stamps, injection.ended_ns, side="right"))
        if self._first < 5 or self._end - self._first < 5:
            raise ValueError(f"{injection.fault.name}: too few outputs: {self._first} before the fault, {self._end - self._first} in it")
        self._marks = [mark for mark in trace.marks if injection.injected_ns - 1e9 < mark.stamp_ns <= injection.closed_ns]
        self._injection, self._fault = injection, injection.fault
        self._limits, self._settings = limits, settings
        self._period_s = settings.control_period_s
        self._steps = np.diff(self._positions, axis=0, prepend=self._positions[:1])
        # A start stands where the arm is measured: its first output is no step on the way, and a stutter no motion.
        starts = ~np.roll(self._steps.any(axis=1), 1) & (np.abs(self._steps).max(axis=1) <= _ASIDE)
        self._on_the_way = np.where(starts[:, None], 0.0, self._steps)
        self._moving = _without_new_starts(self._steps)
        self._problems: list[str] = []

    def cell(self) -> Cell:
        fault = self._fault
        self._judge_motion_before()
        dropped_s = constant_s = bound_s = None
        resumed = False
        if fault.effect == "goes on":
            self._judge_going_on()
        else:
            dropped_s, constant_s, bound_s, resumed = self._judge_rest()
        step, velocity, of_limit = self._judge_steps()
        return Cell(
            fault=fault.name,
            dropped_s=dropped_s,
            constant_s=constant_s,
            bound_s=bound_s,
            step=step,
            velocity=velocity,
            of_limit=of_limit,
            resumed=resumed,
            problems=tuple(self._problems),
        )

    def _seconds(self, index: int) -> float:
        return float(self._stamps[index] - self._injection.injected_ns) / 1e9

    def _judge_motion_before(self) -> None:
        moved = self._injection.direction * (self._positions[self._first - 1] - self._positions[0])[self._injection.joint]
        if moved < 0.5 * self._injection.speed * self._period_s * (self._first - 1):
            self._problems.append("the arm was not in motion when the fault came: nothing is shown")

    def _judge_steps(self) -> tuple[float, float, float]:
        steps = np.abs(self._on_the_way[self._first : self._end])
        arm = steps[:, : self._limits.arm_joints].max()
        of_limit = float((steps / (np.array(self._limits.velocity) * self._period_s)).max())
        if not of_limit <= 1.0 + 1e-6:
            self._problems.append(f"an output is {of_limit:.2f} times the velocity limit away from the one before")
        inside, low, high = self._positions[self._first : self._end], *map(np.array, (self._limits.position_min, self._limits.position_max))
        if not ((inside >= low - _OUTSIDE) & (inside <= high + _OUTSIDE)).all():
            self._problems.append("an output is outside the joint range")
        return float(arm), float(arm / self._period_s), of_limit

    def _judge_going_on(self) -> None:
        joint = self._injection.joint
        inside = self._positions[self._first - 1 : self._end]
        moved = self._injection.direction * float(inside[-1, joint] - inside[0, joint])
        if not moved >= 0.5 * self._injection.speed * self._period_s * len(inside):
            self._problems.append(f"motion did not go on: {moved:.3f} rad in {len(inside)} outputs")
        others = np.delete(np.ptp(inside, axis=0), joint)
        if not others.max() <= _UNMOVED:
            self._problems.append(f"joints moved that the sender did not ask for, by up to {others.max():.3f}")
        if self._fault.place == "second_sender" and not self._in_fault("denied"):
            self._problems.append("the second sender's commands were not refused")
        refused = self._in_fault("refused")
        if refused:
            self._problems.append(f"{len(refused)} commands of the sender were refused: {refused[0].detail}")

    def _in_fault(self, event: str) -> list[Mark]:
        begin, end = self._injection.injected_ns, self._injection.ended_ns
        return [mark for mark in self._marks if mark.event == event and begin <= mark.stamp_ns < end]

    # -- coming to rest -------------------------------------------------------------------------------------------------

    def _judge_rest(self) -> tuple[float | None, float | None, float | None, bool]:
        event_ns = self._event_ns()
        if event_ns is None:
            self._problems.append(f"nothing was heard of the fault: no {self._fault.event}")
            event_ns = self._injection.injected_ns + round(self._fault.patience_s(self._settings) * 1e9)
        self._judge_taken(event_ns)
        constant = self._constant()
        dropped = self._dropped(self._end if constant is None else constant + 1)
        if dropped >= self._end:
            self._problems.append("the sender was followed until the end of the fault")
            return None, None, None, True
        at_event = int(np.searchsorted(self._stamps, event_ns, side="right"))
        if dropped - at_event + 1 > DROP_PERIODS + _SPEEDING_UP:
            self._problems.append(f"the target was dropped {dropped - at_event + 1} outputs after the event, valid: {DROP_PERIODS}")
        braking_s = self._braking_s(dropped)
        bound_s = (event_ns - self._injection.injected_ns) / 1e9 + DROP_PERIODS * self._period_s + braking_s
        if constant is None:
            self._problems.append("the output is not constant at the end of the fault")
            return self._seconds(dropped), None, bound_s, True
        if constant - max(dropped, at_event) > math.ceil(braking_s / self._period_s):
            self._problems.append(f"constant {constant - max(dropped, at_event)} outputs later, valid: {braking_s:.3f} s")
        back = -self._injection.direction * self._on_the_way[self._first : self._end, self._injection.joint] > _BACK
        if (back[1:] & back[:-1]).any():  # one step alone is a new start, where the arm is
            self._problems.append("the output went back, to where an older command pointed")
        resumed = self._moved_after(constant)
        if resumed:
            self._problems.append("motion resumed without a rearm or a new authority")
        elif self._fault.ends == "by itself" and not self._moving[self._end :].any():
            self._problems.append("motion did not go on after the fault was over")
        return self._seconds(dropped), self._seconds(constant), bound_s, resumed

    def _event_ns(self) -> int | None:
        """When the loop was given what it must react to; None where it never was."""
        begin, event = self._injection.injected_ns, self._fault.event
        if event == "silence":
            age_ns = round(self._settings.command_age_s * 1e9)
            taken = [mark.stamp_ns for mark in self._marks if mark.event == "taken" and mark.stamp_ns < self._injection.ended_ns]
            for stamp_ns, following in pairwise([*taken, self._injection.ended_ns]):
                if following > begin and following - stamp_ns > age_ns:
                    return stamp_ns + age_ns
            return None
        if event == "guard_silence":
            heard = [m.stamp_ns for m in self._marks if m.event == "guard" and m.stamp_ns < self._injection.ended_ns]
            return max(heard) + round(self._fault.patience_s(self._settings) * 1e9) if heard else None
        kind = {"refusal": "refused"}.get(str(event), str(event))
        found = [mark.stamp_ns for mark in self._marks if mark.event == kind and mark.stamp_ns >= begin]
        if not found:
            return None
        stall_ns = round(STALL_PERIODS * self._period_s * 1e9) if event == "blocked" else 0
        return found[0] + stall_ns

    def _judge_taken(self, event_ns: int) -> None:
        """No command is taken after the event; before it, no more than the rules' patience lets through and what is on its way.

        A lost arm is found by the loop's own next look, so there one that comes before it is.
        """
        taken = self._in_fault("taken")
        looked = int(np.searchsorted(self._stamps, event_ns, side="right")) + DROP_PERIODS - 1
        if self._fault.event in ("lost", "blocked") and looked < len(self._stamps):
            event_ns = int(self._stamps[looked])
        after = [mark for mark in taken if mark.stamp_ns > event_ns]
        if after:
            self._problems.append(f"{len(after)} commands were taken after the event")
        patience = math.ceil(self._fault.patience_s(self._settings) / self._settings.policy_period_s)
        valid = patience + (1 if self._fault.place == "command" else _ON_THE_WAY)
        if self._fault.event == "refusal" and len(taken) > valid:
            self._problems.append(f"{len(taken)} commands were taken before the first was refused, valid: {valid}")

    def _dropped(self, until: int) -> int:
        """Index of the first output after the last, within the fault and before `until`, that moves with the sender and does not brake."""
        along = self._injection.direction * self._steps[:, self._injection.joint]
        slow = _SLOW * self._injection.speed * self._period_s
        following = [k for k in range(self._first, until) if along[k] >= max(_EVEN * along[k - 1], slow)]
        return following[-1] + 1 if following else self._first

    def _constant(self) -> int | None:
        """Index of the first of the outputs that are equal until the end of the fault."""
        moving = np.flatnonzero(self._moving[self._first : self._end])
        constant = self._first + (int(moving[-1]) if len(moving) else 0)
        return constant if constant < self._end - 3 else None

    def _braking_s(self, dropped: int) -> float:
        velocity: NDArray[np.float64] = np.abs(self._steps[max(dropped - 5, 0) : dropped + 1]).max(axis=0) / self._period_s
        stop_a, stop_j = np.array(self._limits.stop_acceleration), np.array(self._limits.stop_jerk)
        return float((velocity / stop_a + stop_a / stop_j).max()) + self._period_s

    def _moved_after(self, constant: int) -> bool:
        until = self._end if self._fault.ends == "by itself" else len(self._steps)
        return bool(self._moving[constant + 1 : until].any())


def _without_new_starts(steps: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(T,) where the output moves. A single step between outputs at rest moves nothing: the arm had stayed behind what was sent
    (its driver was blocked, or it was lost), and the output stands where the arm is.
    """
    moving: NDArray[np.bool_] = steps.any(axis=1)
    rest = ~np.pad(moving, 1)
    alone = moving & rest[:-2] & rest[2:] & (np.abs(steps).max(axis=1) <= _BEHIND)
    return moving & ~alone
