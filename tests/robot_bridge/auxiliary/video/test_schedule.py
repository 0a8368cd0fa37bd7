"""Plans and their multiply-adds, against what is worked out by hand for CLIP."""

from __future__ import annotations

import pytest

from rl_core.training.config import ConfigError
from robot_bridge.auxiliary.video.schedule import (
    PLAIN,
    MergeSchedule,
    matched_frames,
    matched_per_frame,
    multiply_adds,
    plan_blocks,
)

B32 = dict(blocks=12, frames=12, tokens=50)
B16 = dict(blocks=12, frames=12, tokens=197)


def test_the_tokens_of_clip_b32_are_those_of_the_released_code() -> None:
    plans = plan_blocks(MergeSchedule(), **B32)
    assert [(plan.clips, plan.tokens_out) for plan in plans] == [
        *((12, tokens) for tokens in range(48, 33, -2)), (6, 44), (3, 56), (1, 107), (1, 97),
    ]  # fmt: skip
    assert [plan.cls for plan in plans] == [1] * 8 + [2, 4, 12, 12]
    last = plan_blocks(MergeSchedule(per_frame=10), **B16)[-1]
    assert (last.clips, last.tokens_out) == (1, 321)


@pytest.mark.parametrize(("sizes", "removed", "plain", "merged"), [(B32, 2, 51.5, 33.3), (B16, 10, 209, 126)])
def test_multiply_adds_of_clip_in_giga(sizes: dict[str, int], removed: int, plain: float, merged: float) -> None:
    assert multiply_adds(plan_blocks(PLAIN, **sizes), 768) / 1e9 == pytest.approx(plain, rel=2e-3)
    assert multiply_adds(plan_blocks(MergeSchedule(per_frame=removed), **sizes), 768) / 1e9 == pytest.approx(merged, rel=1e-3)


def test_multiply_adds_by_hand() -> None:
    """Two frames of one CLS and three patches, width 4; block 0 removes a patch of each frame, block 1 joins both frames."""
    plans = plan_blocks(
        MergeSchedule(per_frame=1, clip_blocks=(1,), groups=(2,), keep_across=0.5, keep_inside=1.0), blocks=2, frames=2, tokens=4
    )
    first = 2 * (4 * 16 * 4 + 2 * 4 * 4**2 + 8 * 16 * 3)
    second = 1 * (4 * 16 * 4 + 2 * 4 * 4**2 + 8 * 16 * 4)  # 6 tokens come in, 3 would go, but at most 2 of the 4 patches
    assert multiply_adds(plans, 4) == first + second


def test_baselines_cost_as_much_as_the_budget_or_a_little_more() -> None:
    budget = multiply_adds(plan_blocks(MergeSchedule(), **B32), 768)
    removed = matched_per_frame(budget, width=768, **B32)
    costs = [multiply_adds(plan_blocks(PLAIN.override(per_frame=r), **B32), 768) for r in (removed, removed + 1)]
    assert costs[1] < budget <= costs[0]
    frames = matched_frames(budget, width=768, **B32)
    costs = [multiply_adds(plan_blocks(PLAIN, blocks=12, frames=count, tokens=50), 768) for count in (frames - 1, frames)]
    assert costs[0] < budget <= costs[1] and frames == 8


def test_nothing_matches_nothing() -> None:
    budget = multiply_adds(plan_blocks(PLAIN, **B32), 768)
    assert (matched_per_frame(budget, width=768, **B32), matched_frames(budget, width=768, **B32)) == (0, 12)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"clip_blocks": (8, 9)}, "as many as groups"),
        ({"clip_blocks": (9, 8, 10)}, "rising numbers"),
        ({"keep_across": 0.0}, "keep_across: 0.0, valid: above 0"),
        ({"per_frame": -1}, "per_frame: -1, valid: 0 or more"),
    ],
)
def test_a_schedule_that_cannot_be_says_why(given: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        MergeSchedule(**given)  # type: ignore[arg-type]


def test_a_tower_that_does_not_fit_the_schedule_says_why() -> None:
    with pytest.raises(ConfigError, match=r"valid: 0..3, the tower has 4 blocks"):
        plan_blocks(MergeSchedule(), blocks=4, frames=12, tokens=50)
    with pytest.raises(ConfigError, match="10 frames .* valid: a multiple of 12"):
        plan_blocks(MergeSchedule(), blocks=12, frames=10, tokens=50)
