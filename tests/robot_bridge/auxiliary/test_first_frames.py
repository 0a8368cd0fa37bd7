"""A verdict by an episode's first frames."""

from __future__ import annotations

import math

from robot_bridge.auxiliary.first_frames import FirstFrames
from robot_bridge.auxiliary.hold_rule import Guard, HoldRule

RULE = HoldRule(on=("unknown",), above=0.5, max_age_s=1.0)


def test_the_mean_of_the_first_frames_stands_until_the_next_episode() -> None:
    first = FirstFrames(2)
    assert "no episode" in first.missing
    first.add(1, {"a": 9.0})
    assert first.begin(0, 10)
    assert not first.begin(0, 10), "the same episode, said again"
    first.add(9, {"a": 9.0})  # a frame of before
    first.add(10, {"a": 1.0})
    assert "1 of" in first.missing
    first.add(11, {"a": 2.0})
    first.add(12, {"a": 9.0})  # the verdict is there
    assert not first.missing and first.mean == {"a": 1.5}
    assert first.begin(1, 20) and "0 of" in first.missing


def test_a_number_that_one_frame_lacks_is_nan() -> None:
    first = FirstFrames(2)
    first.begin(0, 0)
    first.add(1, {"a": 1.0})
    first.add(2, {})
    assert math.isnan(first.mean["a"])


def test_a_guard_by_first_frames_holds_until_they_came_and_is_not_moved_by_later_ones() -> None:
    guard = Guard("g", RULE, FirstFrames(2))
    guard.begin(0, 0)
    guard.judged(1, {"unknown": 0.0})
    assert guard.report(1).hold and "1 of" in guard.report(1).message
    guard.judged(2, {"unknown": 0.0})
    assert not guard.report(2).hold
    guard.judged(3, {"unknown": 1.0})  # the hand is in the way
    assert not guard.report(3).hold
    assert guard.report(3 + 2_000_000_000).hold, "pictures that stop hold all the same"


def test_a_guard_by_first_frames_holds_from_the_next_episode_on() -> None:
    guard = Guard("g", RULE, FirstFrames(1))
    guard.begin(0, 0)
    guard.judged(1, {"unknown": 0.0})
    assert not guard.report(1).hold
    guard.begin(1, 5)
    assert guard.report(5).hold
    guard.judged(4, {"unknown": 0.0})  # of the episode before
    assert guard.report(5).hold
    guard.judged(6, {"unknown": 1.0})
    assert guard.report(6).hold and "above" in guard.report(6).message


def test_a_number_that_is_missing_in_a_first_frame_holds() -> None:
    guard = Guard("g", RULE, FirstFrames(2))
    guard.begin(0, 0)
    guard.judged(1, {"unknown": 0.0})
    guard.judged(2, {})
    assert guard.report(2).hold
