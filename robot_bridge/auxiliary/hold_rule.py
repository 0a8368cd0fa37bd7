"""When a recogniser makes the arm hold: the rule, and what its node says on `safety/holds`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rl_core.errors import ArmstackError
from robot_bridge.auxiliary.first_frames import FirstFrames
from robot_bridge.control.holds import GuardReport


class HoldRuleError(ArmstackError):
    """A rule that cannot be judged; names the field, what was found and what is valid."""


@dataclass(frozen=True, kw_only=True)
class HoldRule:
    """Hold while one of the numbers `on` is above `above`, or the newest judged frame is older than `max_age_s`.

    Attributes:
        on: names of values or classes of a prediction; none: this is no guard.
        above: the limit; a number equal to it does not hold.
        max_age_s: how old the newest judged frame may become, seconds.
    """

    on: tuple[str, ...]
    above: float
    max_age_s: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.above):
            raise HoldRuleError(f"hold_above: {self.above}, valid: a finite number")
        if not 0 < self.max_age_s < math.inf:
            raise HoldRuleError(f"max_age_s: {self.max_age_s}, valid: finite, above 0")

    def check(self, names: Iterable[str]) -> None:
        """Checks that a prediction has the numbers the rule is about.

        Raises:
            HoldRuleError: it has not; lists those it has.
        """
        there = list(names)
        if missing := [name for name in self.on if name not in there]:
            raise HoldRuleError(f"hold_on: {', '.join(missing)}, valid: {', '.join(there)}")

    def judge(self, numbers: Mapping[str, float]) -> str:
        """Why the arm must hold, of one frame's numbers; empty where it need not."""
        reasons = []
        for name in self.on:
            number = numbers.get(name, math.nan)
            if not number <= self.above:  # so that NaN and what is missing hold
                reasons.append(f"{name} {number:.3g} above {self.above:g}")
        return ", ".join(reasons)


class Guard:
    """The guard's word: hold until a frame was judged, and whenever the rule says so. One thread judges, others may ask.

    Args:
        name: as the arm node's `required_guards` lists it.
        rule: when it holds.
        first: judge each episode by its first frames, and hold until they have come; None: each frame by itself.
    """

    def __init__(self, name: str, rule: HoldRule, first: FirstFrames | None = None) -> None:
        self.name = name
        self.rule = rule
        self._first = first
        self._newest: tuple[int, str] | None = None
        self._failed = ""

    def judged(self, stamp_ns: int, numbers: Mapping[str, float]) -> None:
        """Takes the numbers of the frame of source time `stamp_ns`."""
        if self._first is None:
            self._newest = stamp_ns, self.rule.judge(numbers)
        else:
            self._first.add(stamp_ns, numbers)
            self._newest = stamp_ns, self._first.missing or self.rule.judge(self._first.mean)

    def begin(self, episode: int, stamp_ns: int) -> None:
        """An episode began at source time `stamp_ns`; nothing to a guard that judges each frame by itself."""
        if self._first is not None and self._first.begin(episode, stamp_ns) and self._newest is not None:
            self._newest = self._newest[0], self._first.missing

    def fail(self, reason: str) -> None:
        """Nothing is judged any more: it holds from now on."""
        self._failed = reason

    def report(self, now_ns: int) -> GuardReport:
        """What to say at source time `now_ns`."""
        stamp_ns, reason = self._newest or (None, "no frame judged yet")
        if stamp_ns is not None and not reason:
            age_s = (now_ns - stamp_ns) * 1e-9
            if not abs(age_s) <= self.rule.max_age_s:
                reason = f"newest judged frame is {age_s:.2f} s old, valid: within {self.rule.max_age_s:g} s"
        reason = self._failed or reason
        return GuardReport(
            name=self.name, hold=bool(reason), message=reason or "ok", judged_stamp_ns=stamp_ns, max_age_s=self.rule.max_age_s
        )
