"""How many pushed motions come back, asserted over the committed results (`armstack reproduce contractive_pushes`): the lower ends of the
measured intervals. A missing run fails."""

from functools import partial

import pytest

from tests.rl_core import committed_results

mean = partial(committed_results.mean, "contractive_pushes")

pytestmark = pytest.mark.slow


def test_pushed_drawings_come_back_with_a_region_that_holds_the_pushes() -> None:
    assert mean("contractive, drawing, jitter 0.5", "back_percent") >= 92
    assert mean("contractive, drawing, jitter 0.5", "back_in_time_percent") >= 92
    assert mean("contractive, drawing, jitter 0.5", "end_cm_median") < 1


def test_most_pushed_grasps_come_back() -> None:
    assert mean("contractive, Lift", "back_percent") >= 69


@pytest.mark.parametrize(("task", "ours"), [("drawing", "contractive, drawing, jitter 0.5"), ("Lift", "contractive, Lift")])
def test_more_come_back_than_of_cloning_and_of_a_replay(task: str, ours: str) -> None:
    for other in ("BC", "replayed open loop"):
        assert mean(f"{other}, {task}", "back_percent_high") < mean(ours, "back_percent_low")


@pytest.mark.parametrize("task", ["drawing", "Lift"])
def test_pushes_displace_the_hand_by_five_to_eight_centimetres(task: str) -> None:
    for policy in ("contractive", "BC", "replayed open loop"):
        assert 4.5 <= mean(f"{policy}, {task}", "displaced_cm") <= 10
