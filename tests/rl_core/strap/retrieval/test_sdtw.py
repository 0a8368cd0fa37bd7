import itertools

import numpy as np
import pytest

from rl_core.strap.sdtw import STEPS, align, as_double, distances
from rl_core.strap.sdtw_numpy import align_numpy


def brute_force(query: np.ndarray, prior: np.ndarray, steps: str) -> tuple[float, int, int]:
    """Cheapest of all paths, walked one by one: (cost, start, stop)."""
    cost = np.linalg.norm(query[:, None] - prior[None], axis=-1)
    n, m = cost.shape
    best = (np.inf, -1, -1)

    def walk(i: int, j: int, sum_: float, start: int) -> None:
        nonlocal best
        sum_ += cost[i, j]
        if i == n - 1 and sum_ < best[0]:
            best = (sum_, start, j + 1)
        for a, b in STEPS[steps]:
            if i + a < n and j + b < m:
                walk(i + a, j + b, sum_, start)

    for start in range(m):
        walk(0, start, 0.0, start)
    return best


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("seed", range(8))
def test_equals_brute_force_over_all_starts_and_paths(steps, seed) -> None:
    rng = np.random.default_rng(seed)
    query, prior = rng.normal(size=(5, 2)), rng.normal(size=(9, 2))
    cost, start, stop = brute_force(query, prior, steps)
    for found in (align(query, prior, steps), align_numpy(query, prior, steps)):
        assert found is not None and (found.start, found.stop) == (start, stop)
        assert found.cost == pytest.approx(cost, abs=1e-9)


def test_a_planted_segment_is_found_where_it_is_under_noise() -> None:
    rng = np.random.default_rng(0)
    prior = rng.normal(size=(150, 16))
    query = prior[60:95]
    exact = align(query, prior)
    assert exact is not None and (exact.start, exact.stop) == (60, 95) and exact.cost < 1e-5
    noisy = align(query + 0.05 * rng.normal(size=query.shape), prior)
    assert noisy is not None and (noisy.start, noisy.stop) == (60, 95)


def test_a_query_of_twice_the_speed_matches_and_one_of_half_the_speed_cannot() -> None:
    prior = np.cumsum(np.abs(np.random.default_rng(1).normal(size=(120, 4))), axis=0)
    fast = align(prior[20:80:2], prior)
    assert fast is not None and (fast.start, fast.stop) == (20, 79) and fast.cost < 1e-4
    slow = np.repeat(prior[20:50], 2, axis=0)
    strap, classic = align(slow, prior), align(slow, prior, "classic")
    assert strap is not None and classic is not None
    assert strap.cost > 10 and classic.cost < 1e-3 and (classic.start, classic.stop) == (20, 50)


def test_matches_are_as_long_as_the_query_up_to_twice_less_one() -> None:
    rng = np.random.default_rng(2)
    for n, m in itertools.product((1, 3, 12), (12, 30)):
        found = align(rng.normal(size=(n, 3)), rng.normal(size=(m, 3)))
        assert found is not None and n <= found.stop - found.start <= 2 * n - 1
        assert 0 <= found.start < found.stop <= m


def test_a_query_longer_than_the_prior_matches_nothing() -> None:
    rng = np.random.default_rng(3)
    assert align(rng.normal(size=(10, 3)), rng.normal(size=(9, 3))) is None
    assert align_numpy(rng.normal(size=(10, 3)), rng.normal(size=(9, 3))) is None
    assert align(rng.normal(size=(10, 3)), rng.normal(size=(9, 3)), "classic") is not None


def test_distances_of_equal_rows_are_no_nan() -> None:
    rows = np.float32(1000) + np.random.default_rng(4).normal(size=(40, 768)).astype(np.float32)
    found = distances(as_double(rows), as_double(rows))
    assert np.isfinite(found).all() and np.diag(found).max() < 1e-2
    match = align(rows[5:25], rows)
    assert match is not None and (match.start, match.stop) == (5, 25)


def test_tracing_back_at_the_first_columns_never_wraps_around() -> None:
    """The cheapest path begins at column 0 while the last column is cheaper still: an index of -1 would jump there."""
    prior = np.array([[0.0], [1.0], [2.0], [50.0], [0.0]])
    match = align(np.array([[0.0], [1.0], [2.0]]), prior)
    assert match is not None and (match.start, match.stop, match.cost) == (0, 3, pytest.approx(0, abs=1e-6))


@pytest.mark.parametrize("steps", STEPS)
def test_compiled_and_numpy_agree(steps) -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        query, prior = rng.normal(size=(rng.integers(2, 30), 6)), rng.normal(size=(rng.integers(30, 90), 6))
        ours, reference = align(query, prior, steps), align_numpy(query, prior, steps)
        assert ours is not None and reference is not None
        assert (ours.start, ours.stop) == (reference.start, reference.stop) and abs(ours.cost - reference.cost) < 1e-5


@pytest.mark.parametrize("steps", STEPS)
def test_a_limit_ends_the_search_only_where_nothing_is_below_it(steps) -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        query, prior = rng.normal(size=(12, 3)), rng.normal(size=(40, 3))
        free = align(query, prior, steps)
        assert free is not None
        assert align(query, prior, steps, limit=free.cost) == free
        assert align(query, prior, steps, limit=free.cost * 0.999) is None
