"""Which sample belongs to which observation, in small cases that can be done by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rl_core.data.formats.bag_alignment import align


def _ns(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_hold_takes_the_newest_sample_that_is_not_after_the_observation() -> None:
    found = align(_ns(100, 200, 300), _ns(90, 200, 201, 299, 301), "hold", 50)
    assert found.index.tolist() == [0, 1, 3]  # one with the observation's own stamp counts, one a nanosecond later does not
    assert found.age_ns.tolist() == [10, 0, 1] and found.age_ns.dtype == np.int64
    assert found.usable.all() and not found.stale.any()


def test_hold_keeps_a_stale_sample_and_counts_it() -> None:
    found = align(_ns(100, 150, 151, 400), _ns(100), "hold", 50)
    assert found.age_ns.tolist() == [0, 50, 51, 300]
    assert found.stale.tolist() == [False, False, True, True]  # the bound itself is fresh
    assert found.usable.all()


def test_as_of_takes_the_nearest_sample_on_either_side_the_earlier_of_two_equally_near() -> None:
    found = align(_ns(100, 200, 300), _ns(80, 105, 190, 210, 340), "as_of", 40)
    assert found.index.tolist() == [1, 2, 4]
    assert found.age_ns.tolist() == [-5, 10, -40]  # negative: it looks ahead
    assert found.usable.all()


def test_as_of_drops_a_step_without_a_sample_within_the_bound() -> None:
    found = align(_ns(0, 100, 200), _ns(41, 200), "as_of", 40)
    assert found.usable.tolist() == [False, False, True] and found.stale.tolist() == [True, True, False]


def test_drop_drops_a_step_without_a_fresh_sample_before_it() -> None:
    found = align(_ns(100, 200, 300), _ns(100, 260, 301), "drop", 50)
    assert found.index.tolist() == [0, 0, 1]
    assert found.usable.tolist() == [True, False, True] and found.stale.tolist() == [False, True, False]


@pytest.mark.parametrize("how", ["hold", "drop"])
def test_before_the_first_sample_there_is_no_step(how: str) -> None:
    found = align(_ns(99, 100), _ns(100), how, 50)  # type: ignore[arg-type]
    assert found.usable.tolist() == [False, True]
    assert align(_ns(99, 100), _ns(), how, 50).usable.tolist() == [False, False]  # type: ignore[arg-type]


@pytest.mark.parametrize(("how", "ages"), [("hold", [3, 28, 10, 5]), ("as_of", [3, -8, 10, 5]), ("drop", [3, 28, 10, 5])])
def test_jitter_gives_every_observation_the_sample_of_its_own_time(how: str, ages: list[int]) -> None:
    samples = _ns(97, 208, 290, 395)  # nominal 100, 200, 300, 400
    samples = np.insert(samples, 1, 172)
    assert align(_ns(100, 200, 300, 400), samples, how, 30).age_ns.tolist() == ages  # type: ignore[arg-type]
