"""What TempMe must show, asserted over the committed results of `armstack reproduce tempme`. A missing run fails."""

import statistics
from functools import partial

import pytest

from tests.rl_core import committed_results

values = partial(committed_results.values, "tempme")

pytestmark = pytest.mark.slow
OURS, UNMERGED, TOME, DROPPED = "TempMe", "LoRA without merging", "LoRA and ToMe inside frames", "LoRA on fewer frames"


def gain(theirs: str, figure: str) -> tuple[float, float]:
    """Mean difference over the seeds, and its standard error."""
    found = [a - b for a, b in zip(values(OURS, figure), values(theirs, figure), strict=True)]
    return statistics.fmean(found), statistics.stdev(found) / len(found) ** 0.5


@pytest.mark.parametrize("theirs", [UNMERGED, TOME, DROPPED])
def test_more_clips_are_found_than_at_equal_cost_and_than_without_merging(theirs: str) -> None:
    """Spec: 2 points more than at equal multiply-adds; measured are 16 to 17."""
    difference, error = gain(theirs, "r1")
    assert difference - error > 12


@pytest.mark.parametrize("theirs", [UNMERGED, TOME, DROPPED])
def test_the_gain_is_where_the_order_of_events_matters(theirs: str) -> None:
    ordered, error = gain(theirs, "r1_ordered")
    elsewhere, _ = gain(theirs, "r1_other")
    assert ordered - error > 18 and elsewhere < 1
    assert min(values(OURS, "twins")) > 80 and max(values(theirs, "twins")) < 55


def test_it_costs_less() -> None:
    assert max(values(OURS, "multiply_adds_share")) <= 0.6
    for theirs in (TOME, DROPPED):
        assert min(values(theirs, "multiply_adds_share")) >= max(values(OURS, "multiply_adds_share")), "they may compute more, not less"
    (share,) = values("costs", "ms_share_tempme")
    assert share < 0.9


def test_merging_untrained_tokens_loses_nothing_that_counts() -> None:
    """Spec: less than 3 points."""
    (whole,), (merged,) = values("zero-shot", "r1"), values("zero-shot, merged", "r1")
    assert merged > whole - 3


def test_a_query_among_ten_thousand_clips_takes_milliseconds() -> None:
    (slowest,) = values("costs", "query_ms_max")
    assert slowest < 100
