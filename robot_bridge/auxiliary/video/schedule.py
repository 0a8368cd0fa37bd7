"""Schedules: where tokens merge and how many, and what a vision tower then costs.

A schedule and the sizes of a tower give one `BlockPlan` a block. The tower follows the plans and the counter counts them, so that the
multiply-adds are those of the tower that runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rl_core.training.config import Config, ConfigError
from robot_bridge.auxiliary.video.merging import removable


@dataclass(frozen=True, kw_only=True)
class MergeSchedule(Config):
    """Where tokens merge. Blocks before the first of `clip_blocks` merge inside frames (ImgMe); those of `clip_blocks` join clips and merge
    across and inside them (ClipMe); later ones merge inside clips."""

    per_frame: int = 2
    """r: tokens that each block before the first of clip_blocks removes from every frame; 0 = none [code: 2 for B/32, 10 for B/16]."""
    clip_blocks: tuple[int, ...] = (8, 9, 10)
    """Blocks, counted from 0, that join clips; none = frames stay apart [code]."""
    groups: tuple[int, ...] = (2, 2, 3)
    """Clips that each of these blocks joins to one [code]."""
    keep_across: float = 0.7
    """R_C: share of tokens left after clips were joined [code]."""
    keep_inside: float = 0.9
    """R_I: share of tokens left after the attention of a joined clip [code]."""

    def __post_init__(self) -> None:
        self.require_least(per_frame=0)
        for name in ("keep_across", "keep_inside"):
            if not 0 < getattr(self, name) <= 1:
                raise ConfigError(f"MergeSchedule.{name}: {getattr(self, name)}, valid: above 0, at most 1")
        if len(self.clip_blocks) != len(self.groups) or list(self.clip_blocks) != sorted(set(self.clip_blocks)):
            raise ConfigError(
                f"MergeSchedule.clip_blocks: {self.clip_blocks} with groups {self.groups}, valid: rising numbers, as many as groups"
            )
        if self.groups:
            self.require_least(groups=1)
        if self.clip_blocks and self.clip_blocks[0] < 0:
            raise ConfigError(f"MergeSchedule.clip_blocks: {self.clip_blocks}, valid: 0 or more")

    @property
    def multiple(self) -> int:
        """The number of frames of a clip is a multiple of this."""
        return math.prod(self.groups)

    def padded(self, frames: int) -> int:
        """Frames of a clip with those that are repeated at its end."""
        return -(-frames // self.multiple) * self.multiple


PLAIN = MergeSchedule(per_frame=0, clip_blocks=(), groups=())
"""Nothing merges."""


@dataclass(frozen=True, kw_only=True)
class BlockPlan:
    """What one block does.

    Attributes:
        clips: that it works on, after it has joined some.
        joined: how many that come in become one; 0 where the block joins none and adds no positions.
        cls: CLS tokens of a clip.
        tokens_in: of a clip, CLS included, after joining.
        across: of which are removed before the attention.
        inside: and after it.
    """

    clips: int
    joined: int
    cls: int
    tokens_in: int
    across: int
    inside: int

    @property
    def attended(self) -> int:
        """Tokens of a clip in the attention."""
        return self.tokens_in - self.across

    @property
    def tokens_out(self) -> int:
        """Tokens of a clip in the MLP and after it."""
        return self.attended - self.inside


def plan_blocks(schedule: MergeSchedule, *, blocks: int, frames: int, tokens: int) -> tuple[BlockPlan, ...]:
    """One plan a block.

    Args:
        schedule: see `MergeSchedule`.
        blocks: of the tower.
        frames: of a clip, a multiple of `schedule.multiple`.
        tokens: of a frame, its CLS included.

    Raises:
        ConfigError: a block that the tower has not, or another number of frames.
    """
    if schedule.clip_blocks and schedule.clip_blocks[-1] >= blocks:
        raise ConfigError(f"MergeSchedule.clip_blocks: {schedule.clip_blocks}, valid: 0..{blocks - 1}, the tower has {blocks} blocks")
    if frames % schedule.multiple:
        raise ConfigError(f"{frames} frames with groups {schedule.groups}, valid: a multiple of {schedule.multiple}")
    groups = dict(zip(schedule.clip_blocks, schedule.groups, strict=True))
    plans: list[BlockPlan] = []
    clips, cls, joins = frames, 1, False
    for index in range(blocks):
        joined = groups.get(index, 0)
        joins = joins or bool(joined)
        count = max(joined, 1)
        clips, cls, tokens = clips // count, cls * count, tokens * count
        across = removable(tokens, cls, _share(tokens, schedule.keep_across)) if joined else 0
        attended = tokens - across
        inside = removable(attended, cls, _share(attended, schedule.keep_inside) if joins else schedule.per_frame)
        plans.append(BlockPlan(clips=clips, joined=joined, cls=cls, tokens_in=tokens, across=across, inside=inside))
        tokens = attended - inside
    return tuple(plans)


def multiply_adds(plans: Sequence[BlockPlan], width: int) -> int:
    """Multiply-adds of the blocks of a vision tower for one clip.

        sum over blocks  clips * (4 w^2 T_a + 2 w T_a^2 + 8 w^2 T_o)

    T_a tokens in the attention: queries, keys, values and the projection, then logits and mixtures; T_o tokens in an MLP of four times the
    width. What comes before and behind the blocks, norms, and the comparison of tokens (0.1 % of the whole) are not in it.
    """
    return sum(
        plan.clips * (4 * width**2 * plan.attended + 2 * width * plan.attended**2 + 8 * width**2 * plan.tokens_out) for plan in plans
    )


def matched_per_frame(budget: int, *, blocks: int, frames: int, tokens: int, width: int) -> int:
    """The r with which merging inside frames alone costs as much as `budget` multiply-adds, or as little more as it can."""
    for removed in range(tokens, 0, -1):
        plans = plan_blocks(PLAIN.override(per_frame=removed), blocks=blocks, frames=frames, tokens=tokens)
        if multiply_adds(plans, width) >= budget:
            return removed
    return 0


def matched_frames(budget: int, *, blocks: int, frames: int, tokens: int, width: int) -> int:
    """How many frames cost as much as `budget` multiply-adds without merging, or as little more as they can."""
    one = multiply_adds(plan_blocks(PLAIN, blocks=blocks, frames=1, tokens=tokens), width)
    return min(-(-budget // one), frames)


def _share(tokens: int, keep: float) -> int:
    return math.floor(tokens * (1 - keep) + 1e-9)  # 0.1 of 70 is 7, though 1 - 0.9 is a little less than 0.1
