"""What SelfSynthX must show, asserted over the committed results of `armstack reproduce selfsynth`. A missing run fails."""

import statistics
from functools import partial

import pytest

from tests.rl_core import committed_results

values, mean = (partial(read, "selfsynth") for read in (committed_results.values, committed_results.mean))

pytestmark = pytest.mark.slow
OURS, RANDOM, ALL, LABELS = "SelfSynthX", "random concepts", "every answer accepted", "labels alone"


def gain(ours: str, theirs: str, figure: str, other: str = "") -> tuple[float, float]:
    """Mean difference over the seeds, and its standard error."""
    found = [a - b for a, b in zip(values(ours, figure), values(theirs, other or figure), strict=True)]
    return statistics.fmean(found), statistics.stdev(found) / len(found) ** 0.5


def test_chosen_concepts_are_visible_more_often_than_random_ones() -> None:
    """Spec: by 10 points or more."""
    difference, error = gain(OURS, OURS, "z_precision", "z_random")
    assert difference >= 10 and difference > 5 * error


def test_explaining_costs_no_accuracy() -> None:
    difference, error = gain(OURS, LABELS, "accuracy_3", "accuracy_1")
    assert difference + error >= -1


def test_answers_cite_visible_features_that_labels_alone_and_no_training_do_not() -> None:
    assert min(values(OURS, "citing_two_3")) > max(*values(LABELS, "citing_two_1"), *values(OURS, "citing_two_base")) + 30


@pytest.mark.parametrize("theirs", [RANDOM, ALL])
def test_what_is_cited_is_true_more_often(theirs: str) -> None:
    difference, error = gain(OURS, theirs, "cited_precision_3")
    assert difference > error


def test_more_answers_are_accepted_from_round_to_round() -> None:
    difference, error = gain(OURS, OURS, "accepted_3", "accepted_2")
    assert difference > error
