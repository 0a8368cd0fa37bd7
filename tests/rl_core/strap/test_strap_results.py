"""What STRAP must show, asserted over the committed results of the long runs (`armstack reproduce strap`). A missing run fails."""

from functools import partial

import pytest

from tests.rl_core import committed_results

values, mean = (partial(read, "strap") for read in (committed_results.values, committed_results.mean))
CAN_LEFT = "can_left, proprioception"

pytestmark = pytest.mark.slow


def test_pieces_show_what_the_target_does_and_baselines_less_so() -> None:
    strap = values(CAN_LEFT, "strap_agreement_percent")
    assert min(strap) >= 80
    for other, margin in (("full_trajectory", 15), ("single_state", 5), ("random", 60), ("shuffled", 60)):
        found = values(CAN_LEFT, f"{other}_agreement_percent")
        assert all(ours - theirs >= margin for ours, theirs in zip(strap, found, strict=True)), other


def test_shuffled_tags_agree_by_chance_alone() -> None:
    """One in eleven were the primitives equally frequent."""
    assert max(values(CAN_LEFT, "primitives")) == 11
    assert max(values(CAN_LEFT, "shuffled_agreement_percent")) < 20


def test_pieces_are_long_and_single_states_come_in_more_and_shorter_runs() -> None:
    assert min(values(CAN_LEFT, "strap_run_mean")) >= 20
    assert mean(CAN_LEFT, "single_state_run_mean") < mean(CAN_LEFT, "strap_run_mean") / 2
    assert mean(CAN_LEFT, "single_state_pieces") > 2 * mean(CAN_LEFT, "strap_pieces")


def test_retrieval_teaches_what_five_demonstrations_do_not() -> None:
    assert mean("STRAP", "success_percent") >= mean("BC", "success_percent") + 10
    assert min(values("STRAP", "success_percent_low")) > max(values("BC", "success_percent_high"))


def test_pictures_find_the_same_primitives() -> None:
    group = "can_left, 2 demonstrations a task, pictures"
    assert mean(group, "strap_agreement_percent") >= 80
    assert mean(group, "strap_agreement_percent") >= mean(group, "full_trajectory_agreement_percent") + 15
    assert mean(group, "shuffled_agreement_percent") < 20


def test_pieces_teach_more_than_the_whole_corpus_or_whole_trajectories() -> None:
    """Not asserted: more than single frames (D-S), which taught more."""
    for other in ("MT", "FT", "BR", "D-T"):
        assert mean("STRAP", "success_percent") > mean(other, "success_percent"), other


def test_few_and_many_pieces_teach_less_than_a_hundred() -> None:
    best = min(values("STRAP", "success_percent_low"))
    for pieces in ("K = 400", "K = 2000"):
        assert max(values(pieces, "success_percent_high")) < best
    assert mean("K = 20", "success_percent") < mean("STRAP", "success_percent")
