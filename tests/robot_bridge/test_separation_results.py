"""What speed and separation must show, asserted over the committed results of `armstack reproduce separation`. A missing run fails."""

from functools import partial

import pytest

from tests.rl_core import committed_results

values = partial(committed_results.values, "separation")

pytestmark = pytest.mark.slow
RADARS, TRUE, UNGUARDED = ("RFMamba", "CNN on images"), "distances without error", "no guard"


@pytest.mark.parametrize("group", [TRUE, *RADARS])
def test_nothing_moves_within_the_limit(group: str) -> None:
    """With true distances that must hold; with a radar's it is what was measured in fifty visits each."""
    assert values(group, "violations") == [0] * 5
    assert min(values(group, "least_moving_m")) > 0.75, "the limit is 0.5 m"
    assert values(group, "unstopped_holds") == [0] * 5


def test_people_came_within_the_limit_and_an_arm_without_a_guard_moved_there() -> None:
    for group in (TRUE, *RADARS):
        assert min(values(group, "within_s")) > 10
    assert min(values(UNGUARDED, "violation_s")) > 10


def test_the_arm_is_not_kept_from_its_work() -> None:
    for group in RADARS:
        assert min(values(group, "moving_percent")) > 45 and max(values(group, "false_hold_percent")) < 12  # the restart delay: 10
    assert min(values(TRUE, "moving_percent")) > 51


def test_a_window_is_judged_before_the_time_that_the_rule_allows_for_it() -> None:
    for group in RADARS:
        assert max(values(group, "look_ms_95")) < 50
