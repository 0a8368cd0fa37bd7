from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from rl_core.training.intervals import bootstrap_interval, wilson_interval


@pytest.mark.parametrize(("successes", "trials"), [(0, 50), (1, 50), (25, 50), (49, 50), (50, 50), (1, 1)])
def test_wilson_is_scipys(successes, trials):
    expected = binomtest(successes, trials).proportion_ci(method="wilson")
    assert wilson_interval(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilson_of_no_success_is_no_point():
    low, high = wilson_interval(0, 50)
    assert low == 0.0 and 0.05 < high < 0.1


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (-1, 3), (4, 3)])
def test_wilson_refuses_what_is_no_count(successes, trials):
    with pytest.raises(ValueError, match="valid: 0 <= successes <= trials"):
        wilson_interval(successes, trials)


def test_bootstrap_covers_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for k in range(200):
        low, high = bootstrap_interval(rng.normal(3.0, 2.0, 50), seed=k, resamples=500)
        covered += low <= 3.0 <= high
    assert 0.88 <= covered / 200 <= 0.99


def test_bootstrap_is_repeatable_and_needs_values():
    values = list(np.random.default_rng(1).normal(size=30))
    assert bootstrap_interval(values) == bootstrap_interval(values) != bootstrap_interval(values, seed=1)
    assert bootstrap_interval([2.0, 2.0]) == (2.0, 2.0)
    with pytest.raises(ValueError, match="at least one"):
        bootstrap_interval([])
