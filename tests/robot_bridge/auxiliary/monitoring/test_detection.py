from __future__ import annotations

import numpy as np
import pytest

from robot_bridge.auxiliary.monitoring.detection import DetectionError, auroc, false_accept_rate, known_threshold


def test_auroc_is_the_share_of_pairs_in_the_right_order():
    generator = np.random.default_rng(0)
    known, unknown = generator.integers(0, 6, 40).astype(float) + 1, generator.integers(0, 6, 30).astype(float)
    pairs = [1.0 if a > b else 0.5 if a == b else 0.0 for a in known for b in unknown]
    assert auroc(known, unknown) == pytest.approx(np.mean(pairs))


def test_higher_is_known():
    known, unknown = np.array([2.0, 3.0]), np.array([0.0, 1.0])
    assert auroc(known, unknown) == 1 and auroc(unknown, known) == 0 and auroc(known, known) == 0.5
    assert false_accept_rate(known, unknown) == 0 and false_accept_rate(unknown, known) == 1


def test_the_threshold_accepts_95_percent_of_the_known_and_no_more_than_needed():
    known = np.random.default_rng(1).normal(size=1000)
    threshold = known_threshold(known)
    assert (known >= threshold).mean() == 0.95
    assert known_threshold(np.array([5.0])) == 5.0


def test_false_accepts_count_at_that_threshold():
    known, unknown = np.arange(100.0), np.array([-1.0, 4.0, 5.0, 50.0])
    assert known_threshold(known) == 5.0 and false_accept_rate(known, unknown) == 0.5


@pytest.mark.parametrize("scores", [np.array([]), np.array([1.0, np.nan])])
def test_scores_that_mean_nothing_are_refused(scores):
    with pytest.raises(DetectionError, match="all finite"):
        auroc(scores, np.array([1.0]))
