"""What DVFB must show, asserted over the committed results of the long runs (`armstack reproduce dvfb`). A missing run fails."""

import statistics
from functools import partial

import pytest

from tests.rl_core import committed_results

values, mean = (partial(read, "dvfb") for read in (committed_results.values, committed_results.mean))

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("ours", ["DVFB", "DVFB, rooms"])
def test_an_inferred_z_reaches_at_least_twice_as_many_goals_as_a_random_one(ours: str) -> None:
    assert mean(ours, "success_rate") >= 2 * mean(ours, "success_rate_blind")
    assert min(values(ours, "success_rate")) >= 0.3


def test_the_opposite_of_a_reward_reaches_nothing() -> None:
    assert max(values("the reward's opposite", "success_rate")) < min(values("DVFB", "success_rate")) / 4


def test_the_best_of_dense_rewards_tell_more_than_all_of_them_and_many_samples_more_than_few() -> None:
    assert mean("dense, top 1 % of the samples", "return_mean") > mean("dense, all samples", "return_mean")
    assert mean("DVFB", "success_rate") > mean("500 samples, not 10 000", "success_rate")


def test_skills_see_more_than_random_actions() -> None:
    """Not asserted: more than FB alone, which the figures do not support."""
    assert min(values("DVFB", "coverage")) > max(values("random actions", "coverage")) + 0.15
    assert min(values("DVFB, rooms", "coverage")) > max(values("random actions, rooms", "coverage")) + 0.5


def test_what_dvfb_explored_transfers_better_than_what_fb_explored() -> None:
    pairs = zip(values("FB offline, DVFB's data", "success_rate"), values("FB offline, FB's own data", "success_rate"), strict=True)
    gains = [ours - theirs for ours, theirs in pairs]
    assert statistics.fmean(gains) > statistics.stdev(gains) / len(gains) ** 0.5


def test_offline_on_the_same_data_fb_reaches_as_much_as_online() -> None:
    assert min(values("FB offline, DVFB's data", "success_rate")) >= mean("DVFB", "success_rate")


def test_skills_act_differently() -> None:
    assert min(values("DVFB", "action_spread")) > 0.5


def test_fine_tuning_loses_nothing_and_does_not_mind_the_unit_of_the_reward() -> None:
    starts, ends = (values("dual-value fine-tuning", figure) for figure in ("return_start", "return_end"))
    assert all(end > start - 1.0 for start, end in zip(starts, ends, strict=True))
    small, large = (values(f"reward x {scale}", "return_mean_of_run") for scale in ("0.01", "100"))
    assert max(abs(a - b) for a, b in zip(small, large, strict=True)) < 0.5


def test_without_the_skill_value_fine_tuning_drops_first() -> None:
    assert max(values("without the skill value", "return_lowest")) < min(values("dual-value fine-tuning", "return_lowest")) - 5


def test_the_strongest_exploration_sees_more_but_its_skills_are_alike() -> None:
    strongest = values("alpha 100", "coverage")
    assert min(strongest) > max(values("FB only", "coverage"))
    assert statistics.fmean(strongest) > mean("FB only", "coverage") + 0.1
    assert max(values("alpha 100", "action_spread")) < 0.2 and max(values("alpha 100", "success_rate")) < 0.1
    assert min(values("FB offline, alpha 100's data", "success_rate")) > 0.4


@pytest.mark.parametrize("theirs", ["APS", "SF with Laplacian features"])
def test_fb_features_reach_more_goals_than_other_features(theirs: str) -> None:
    assert min(values("DVFB", "success_rate")) > max(values(theirs, "success_rate"))


def test_a_pendulum_swings_up_zero_shot() -> None:
    """Spec: at least 60 % of a task-trained method with as many steps."""
    assert min(values("DVFB, pendulum", "return_mean")) >= 0.95 * max(values("TD3, pendulum", "return_end"))
    assert mean("DVFB, pendulum", "return_mean") >= mean("FB only, pendulum", "return_mean")


def test_the_hand_reaches_more_points_where_b_sees_it_alone_and_exploration_has_a_value() -> None:
    ours = values("DVFB, B sees the hand", "return_mean")
    assert min(ours) > 1.2 * max(values("FB only, B sees the hand", "return_mean"))
    assert min(ours) > 2 * max(values("DVFB, arm", "return_mean"))
    assert mean("DVFB, B sees the hand", "success_rate") > 0.2 > mean("FB only, B sees the hand", "success_rate")


def test_over_ros_the_hand_ends_near_more_goals_than_under_a_random_z() -> None:
    """95 % intervals of each seed, which do not overlap."""
    group = "DVFB, B sees the hand, over ROS"
    lowest, highest = values(group, "within_10cm_percent_low"), values(group, "blind_within_10cm_percent_high")
    assert all(ours > blind for ours, blind in zip(lowest, highest, strict=True))
    assert min(values(group, "passed_10cm_percent")) > 3 * max(values(group, "blind_passed_10cm_percent"))
    assert max(values(group, "prepared_ms_median")) < 50
