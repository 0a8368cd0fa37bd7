import numpy as np
import pytest

from rl_core.strap import search as search_module
from rl_core.strap.bounds import Bounds
from rl_core.strap.sdtw import STEPS, RetrievalError, align
from rl_core.strap.search import InMemory, Match, merge_matches, search


def walks(rng: np.random.Generator, count: int, lengths: tuple[int, int], size: int, noise: float) -> list[np.ndarray]:
    """Smooth paths in a space of few dimensions, with noise in all of them."""
    basis = np.random.default_rng(9).normal(size=(5, size))
    found = []
    for _ in range(count):
        steps = rng.normal(size=(int(rng.integers(*lengths)), 5)).cumsum(axis=0)
        found.append((steps @ basis * 0.2 + noise * rng.normal(size=(len(steps), size))).astype(np.float32))
    return found


def plain(queries: list[np.ndarray], prior: InMemory, k: int, steps: str = "strap") -> list[list[Match]]:
    """Every pair aligned, one by one."""
    found = []
    for query in queries:
        matches = []
        for number in range(len(prior.lengths)):
            place = align(query, prior.block(number, number + 1), steps)
            if place is not None:
                matches.append(Match(cost=place.cost, trajectory=number, start=place.start, stop=place.stop))
        found.append(sorted(matches)[:k])
    return found


@pytest.fixture(scope="module", params=[0.02, 1.0], ids=["smooth", "noisy"])
def data(request) -> tuple[list[np.ndarray], InMemory]:
    rng = np.random.default_rng(0)
    prior = walks(rng, 60, (8, 70), 96, request.param)
    prior += [prior[7].copy(), prior[7].copy()]  # ties
    return walks(rng, 7, (6, 30), 96, request.param) + [prior[7][2:]], InMemory(prior)


@pytest.mark.parametrize("steps", STEPS)
def test_search_is_to_the_bit_what_aligning_every_pair_gives(data, monkeypatch, steps) -> None:
    monkeypatch.setattr(search_module, "_BLOCK_VALUES", 20_000)  # several blocks, whose limits end work early
    queries, prior = data
    expected = plain(queries, prior, 4, steps)
    assert search(queries, prior, 4, steps=steps) == expected
    assert search(queries, prior, 4, steps=steps, threads=2) == expected
    assert search(queries, prior, 4, steps=steps, rank=8) == expected
    parts = [search(queries, prior, 4, steps=steps, span=span) for span in ((0, 20), (20, 21), (21, 62))]
    assert merge_matches(parts, 4) == expected
    one_by_one = [search([query], prior, 4, steps=steps)[0] for query in queries]
    assert one_by_one == expected


def test_bounds_spare_most_of_the_work(data, monkeypatch) -> None:
    queries, prior = data
    aligned = []
    refine = search_module._refine
    monkeypatch.setattr(search_module, "_refine", lambda *given: aligned.append(refine(*given)) or aligned[-1])
    monkeypatch.setattr(search_module, "_BLOCK_VALUES", 20_000)
    search(queries, prior, 2)
    assert sum(count for count, _ in aligned) < 0.5 * len(queries) * len(prior.lengths)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("rank", [4, 32, None])
def test_bounds_never_exceed_the_cost(data, steps, rank) -> None:
    queries, prior = data
    bounds = Bounds([query.astype(np.float64) for query in queries], steps, rank)
    for number in range(len(prior.lengths)):
        lower = bounds.lower(prior.block(number, number + 1), np.full(len(queries), np.inf))
        for query, bound in zip(queries, lower, strict=True):
            place = align(query, prior.block(number, number + 1), steps)
            assert bound == np.inf if place is None else bound <= place.cost


def test_bounds_hold_for_features_far_from_the_origin() -> None:
    rng = np.random.default_rng(3)
    prior = InMemory([500 + rng.normal(size=(40, 32)) for _ in range(20)])
    queries = [prior.block(3, 4)[5:20].astype(np.float32)]
    assert search(queries, prior, 3) == plain(queries, prior, 3)
    assert search(queries, prior, 1)[0][0] == Match(cost=pytest.approx(0, abs=1e-3), trajectory=3, start=5, stop=20)


def test_fewer_matches_than_k_where_trajectories_are_too_short() -> None:
    prior = InMemory([np.zeros((5, 3)), np.zeros((9, 3))])
    found = search([np.zeros((7, 3)), np.zeros((20, 3))], prior, 4)
    assert [len(matches) for matches in found] == [1, 0] and found[0][0].trajectory == 1


@pytest.mark.parametrize(
    ("queries", "k", "words"),
    [
        ([], 1, "no query"),
        ([np.zeros((4, 2))], 1, r"shape \(4, 2\), valid: \(1 frame or more, 3\)"),
        ([np.full((4, 3), np.nan)], 1, "segment 0 has features that are not finite"),
        ([np.zeros((4, 3))], 0, "k is 0"),
    ],
)
def test_bad_queries_are_named(queries, k, words) -> None:
    with pytest.raises(RetrievalError, match=words):
        search(queries, InMemory([np.zeros((9, 3))]), k)
