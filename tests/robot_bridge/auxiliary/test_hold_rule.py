"""When a recogniser holds the arm."""

from __future__ import annotations

import math

import pytest

from robot_bridge.auxiliary.hold_rule import Guard, HoldRule, HoldRuleError

S = 1_000_000_000


def rule(**changed: object) -> HoldRule:
    return HoldRule(**{"on": ("unknown", "hand"), "above": 0.5, "max_age_s": 1.0, **changed})  # type: ignore[arg-type]


def test_it_holds_above_the_limit_and_where_a_number_is_missing_or_nan() -> None:
    assert rule().judge({"unknown": 0.5, "hand": 0.1, "mug": 0.9}) == ""
    assert rule().judge({"unknown": 0.1, "hand": 0.75}) == "hand 0.75 above 0.5"
    assert "hand nan" in rule().judge({"unknown": 0.1}) and "unknown nan" in rule().judge({"unknown": math.nan, "hand": 0.0})
    assert rule(on=()).judge({}) == ""


def test_a_rule_that_cannot_be_judged_is_refused() -> None:
    with pytest.raises(HoldRuleError, match="hold_on: hand, valid: mug, unknown"):
        rule().check(("mug", "unknown"))
    with pytest.raises(HoldRuleError, match="hold_above: nan"):
        rule(above=math.nan)
    with pytest.raises(HoldRuleError, match="max_age_s: 0"):
        rule(max_age_s=0)


def test_a_guard_holds_until_a_frame_was_judged_when_the_judgement_is_old_and_when_it_failed() -> None:
    guard = Guard("unknown_guard", rule(on=("unknown",)))
    first = guard.report(5 * S)
    assert first.hold and first.judged_stamp_ns is None and first.message == "no frame judged yet"
    guard.judged(5 * S, {"unknown": 0.2})
    fresh, late = guard.report(6 * S), guard.report(6 * S + 1)
    assert (fresh.hold, fresh.message, fresh.judged_stamp_ns, fresh.max_age_s) == (False, "ok", 5 * S, 1.0)
    assert late.hold and "1.00 s old" in late.message and late.name == "unknown_guard"
    assert guard.report(3 * S).hold  # a frame of the future is no fresher
    guard.judged(6 * S, {"unknown": 0.9})
    assert guard.report(6 * S).message == "unknown 0.9 above 0.5"
    guard.judged(7 * S, {"unknown": 0.1})
    assert not guard.report(7 * S).hold
    guard.fail("the method is broken")
    assert guard.report(7 * S).message == "the method is broken"
