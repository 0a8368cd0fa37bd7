"""What the guarded pick must show, asserted over the committed results of `armstack reproduce guarded_pick`. A missing run fails."""

from functools import partial

import pytest

from tests.rl_core import committed_results

values = partial(committed_results.values, "guarded_pick")

pytestmark = pytest.mark.slow


def test_every_feed_is_twenty_parts() -> None:
    for group in ("known parts", "known parts, other light", "damaged parts", "foreign parts", "foreign parts, by name"):
        assert values(group, "parts") == [20], group


def test_foreign_parts_that_have_names_are_held_before_contact() -> None:
    assert values("foreign parts, by name", "held_untouched")[0] >= 18
    assert values("known parts, foreign ones by name", "held")[0] <= 1


def test_a_guard_by_lot_fails_that() -> None:
    assert values("foreign parts, verdicts by lot", "held_untouched")[0] < 18
    assert values("known parts, verdicts by lot", "held")[0] > 1


def test_most_known_parts_are_sorted_with_a_guard_as_without() -> None:
    free = values("known parts, guard against cones alone", "sorted")[0]
    assert values("known parts, foreign ones by name", "sorted")[0] >= free - 2
    assert values("known parts", "sorted")[0] >= free - 4


def test_what_was_held_was_not_touched() -> None:
    for group in ("known parts", "damaged parts", "foreign parts", "foreign parts, by name"):
        assert values(group, "held") == values(group, "held_untouched"), group
