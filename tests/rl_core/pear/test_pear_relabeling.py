"""Adaptive relabelling with hand-made values, so that every segment is known."""

from __future__ import annotations

import numpy as np
import pytest

from rl_core.pear.relabeling import (
    above_percent,
    fixed_ends,
    goal_rows,
    higher_rows,
    mean_segment_length,
    segment_ends,
    threshold_of,
)
from rl_core.pear.worlds import GoalSpace
from tests.rl_core.pear.point_world import line, tiny

SPACE = GoalSpace(centre=np.array([10.0, 0.0]), half_width=np.array([20.0, 0.0]), threshold=0.5)


def within_radius(radius: int):
    """Q is -1 where the goal lies at most `radius` states ahead, -50 beyond."""
    return lambda observation, goal: np.where(goal[:, 0] - observation[:, 0] <= radius, -1.0, -50.0).astype(np.float32)


def above(limit: float):
    return lambda here, values, there: values >= limit


@pytest.mark.parametrize("radius", [1, 3, 4])
def test_segments_are_as_long_as_the_lower_level_reaches(radius: int) -> None:
    ends = segment_ends([line(13)], within_radius(radius), above(-10.0), cap=6)
    assert ends == [list(range(radius, 13, radius))]


def test_the_subgoal_is_the_last_state_within_reach_not_the_first_beyond() -> None:
    assert segment_ends([line(4)], within_radius(2), above(-10.0), cap=3) == [[2, 3]]


def test_a_larger_radius_never_adds_segments() -> None:
    rng = np.random.default_rng(0)
    demonstrations = [line(int(states)) for states in rng.integers(5, 40, 10)]
    counts = []
    for radius in range(12):
        ends = segment_ends(demonstrations, within_radius(radius), above(-10.0), cap=9)
        counts.append([len(row) for row in ends])
    assert (np.diff(counts, axis=0) <= 0).all() and counts[0] != counts[-1]


def test_nothing_within_reach_still_advances_by_one() -> None:
    assert segment_ends([line(5)], within_radius(0), above(-10.0), cap=3) == [[1, 2, 3, 4]]


def test_the_cap_holds_where_everything_is_within_reach() -> None:
    assert segment_ends([line(12)], within_radius(99), above(-10.0), cap=4) == [[4, 8, 11]]


def test_demonstrations_of_different_lengths_each_end_at_their_last_state() -> None:
    rng = np.random.default_rng(1)
    demonstrations = [line(states) for states in (2, 9, 30, 17)]
    ends = segment_ends(demonstrations, lambda o, g: rng.uniform(-20, 0, len(o)).astype(np.float32), above(-10.0), cap=5)
    assert [row[-1] for row in ends] == [1, 8, 29, 16]
    assert all(1 <= step <= 5 for row in ends for step in np.diff([0, *row]))


def test_a_hole_in_the_values_ends_the_segment_before_it() -> None:
    def values(observation: np.ndarray, goal: np.ndarray) -> np.ndarray:
        return np.where(goal[:, 0] == 3.0, -50.0, -1.0).astype(np.float32)

    assert segment_ends([line(8)], values, above(-10.0), cap=7)[0][:2] == [2, 3]


def test_normalised_threshold_of_zero_is_fixed_windows() -> None:
    rng = np.random.default_rng(2)
    demonstrations = [line(states) for states in (5, 16, 24)]
    reachable, ahead = threshold_of(tiny(threshold="normalized", threshold_percent=0))
    ends = segment_ends(demonstrations, lambda o, g: rng.uniform(-90, 0, len(o)).astype(np.float32), reachable, cap=4, ahead=ahead)
    assert ends == fixed_ends(demonstrations, 4) == [[4], [4, 8, 12, 15], [4, 8, 12, 16, 20, 23]]


def test_normalised_values_are_shares_of_the_whole_future() -> None:
    """Q falls by 1 a state over 20 states: 100 (1 - k / 20) >= 80 holds up to k = 4; from later states the fall is steeper."""

    def values(observation: np.ndarray, goal: np.ndarray) -> np.ndarray:
        return (observation[:, 0] - goal[:, 0]).astype(np.float32)

    ends = segment_ends([line(21)], values, above_percent(80), cap=10, ahead=None)
    assert ends[0][:2] == [4, 7]  # 16 states are left at 4, and a fifth of them is 3


def test_normalised_values_of_an_untrained_critic_are_no_division_by_zero() -> None:
    with np.errstate(all="raise"):
        ends = segment_ends([line(9)], lambda o, g: np.zeros(len(o), np.float32), above_percent(10), cap=4)
    assert ends == [[4, 8]]


def test_absolute_threshold_is_below_a_goal_c_steps_away_and_above_never() -> None:
    reachable, ahead = threshold_of(tiny(primitive_steps=15, gamma=0.99, threshold_margin=2.0))
    values = np.array([[-13.994 - 1.999, -13.994 - 2.001, -100.0]])
    assert reachable(np.zeros(1), values, values < 0).tolist() == [[True, False, False]] and ahead == 15
    assert reachable(np.ones(1), values, values < 0).tolist() == [[True, False, False]]  # no true value lies above 0


@pytest.mark.parametrize("charge", [0.0, -15.0, -40.0])
def test_regression_a_critic_that_is_low_everywhere_is_not_taken_for_a_lower_level_that_reaches_nothing(charge) -> None:
    """At an entropy of -3 nats the soft value of staying at a goal is -15, about that of a goal 15 steps away without it."""

    def values(observation: np.ndarray, goal: np.ndarray) -> np.ndarray:
        return (charge - (1.0 - 0.99 ** (goal[:, 0] - observation[:, 0])) / 0.01).astype(np.float32)

    rules = [threshold_of(tiny(primitive_steps=c, gamma=0.99, threshold_margin=0.5))[0] for c in (15, 4)]
    ends = [segment_ends([line(31)], values, rule, cap=15) for rule in rules]
    assert ends == [[[15, 30]], [[4, 8, 12, 16, 20, 24, 28, 30]]]


def test_segments_lengthen_as_the_lower_level_improves() -> None:
    lengths = [mean_segment_length(segment_ends([line(31)], within_radius(r), above(-10.0), cap=15)) for r in (2, 5, 10)]
    assert lengths == [2.0, 5.0, 10.0]


def test_rows_lead_from_every_state_of_a_segment_to_its_end() -> None:
    demonstration = line(6)
    rows = higher_rows([demonstration], [[3, 5]], SPACE)
    full = goal_rows(demonstration)
    assert np.array_equal(rows["observation"], full[:5])
    assert np.array_equal(rows["next_observation"], full[[3, 3, 3, 5, 5]])
    assert np.allclose(SPACE.decode(rows["action"])[:, 0], [3, 3, 3, 5, 5])
    assert rows["reward"].tolist() == [-1, -1, -1, 0, 0] and not rows["terminal"].any()


def test_relay_rows_have_every_later_state_of_the_segment_as_subgoal() -> None:
    rows = higher_rows([line(6)], [[3, 5]], SPACE, every_state=True)
    pairs = list(zip(rows["observation"][:, 0].tolist(), SPACE.decode(rows["action"])[:, 0].round(4).tolist(), strict=True))
    assert pairs == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 5)]
    assert np.array_equal(rows["next_observation"][:, 0], SPACE.decode(rows["action"])[:, 0].round(4))


def test_subgoals_beyond_the_goal_space_are_clipped() -> None:
    narrow = GoalSpace(centre=np.zeros(2), half_width=np.array([2.0, 0.0]), threshold=0.5)
    rows = higher_rows([line(6)], [[5]], narrow)
    assert rows["action"].tolist() == [[1.0, 0.0]] * 5


def test_regression_demonstrations_are_not_changed_by_relabelling() -> None:
    """The public code writes subgoals over the demonstrations' achieved goals, so that its next rebuild reads them."""
    demonstrations = [line(9), line(14)]
    before = [(d.observation.copy(), d.achieved.copy(), d.actions.copy(), d.goal.copy()) for d in demonstrations]
    first = segment_ends(demonstrations, within_radius(2), above(-10.0), cap=4)
    one = higher_rows(demonstrations, first, SPACE)
    second = segment_ends(demonstrations, within_radius(2), above(-10.0), cap=4)
    two = higher_rows(demonstrations, second, SPACE)
    assert first == second and all(np.array_equal(one[name], two[name]) for name in one)
    for demonstration, arrays in zip(demonstrations, before, strict=True):
        for name, array in zip(("observation", "achieved", "actions", "goal"), arrays, strict=True):
            assert np.array_equal(getattr(demonstration, name), array)
    with pytest.raises(ValueError, match="read-only"):
        demonstrations[0].achieved[0] = 1.0
