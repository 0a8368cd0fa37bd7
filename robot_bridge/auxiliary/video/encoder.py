"""ClipEncoder: clips and sentences in one space, with tokens that merge over time (TempMe, arXiv 2409.01156).

The vision tower keeps no counters: what merges follows from the schedule and the clip alone, and sizes live for one call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from robot_bridge.auxiliary.video.adapters import AdaptedTowers
from robot_bridge.auxiliary.video.errors import VideoError
from robot_bridge.auxiliary.video.merging import match, merge
from robot_bridge.auxiliary.video.schedule import BlockPlan, MergeSchedule, plan_blocks
from robot_bridge.auxiliary.vlm.blocks import attention
from robot_bridge.auxiliary.vlm.interface import Block
from robot_bridge.auxiliary.vlm.towers import Towers

MAX_SCALE = 100.0
"""CLIP's bound of exp(logit_scale)."""


class ClipEncoder(nn.Module):
    """A frozen vision-language model with adapters and positions in time, which alone are its parameters.

    Args:
        model: frozen; any that offers `vision_blocks`.
        schedule: where tokens merge.
        frames: most frames of a clip.
        rank: of the adapters.

    Attributes:
        towers: the adapted towers.
        positions: for each block that joins clips, a vector (clips that come in, w) for each of them; zero at first.
    """

    def __init__(self, model: Towers, schedule: MergeSchedule, *, frames: int, rank: int) -> None:
        super().__init__()
        self.schedule, self.frames = schedule, schedule.padded(frames)
        self.width = _width(model)
        self.towers = AdaptedTowers(model, self.width, rank)
        plans = plan_blocks(schedule, blocks=len(self.towers.vision), frames=self.frames, tokens=2)
        incoming = [plan.clips * plan.joined for plan in plans if plan.joined]
        self.positions = nn.ParameterList([nn.Parameter(torch.zeros(count, self.width)) for count in incoming])

    def plans(self, frames: int, tokens: int) -> tuple[BlockPlan, ...]:
        """What the blocks do with clips of `frames` frames, a multiple of the schedule's, with `tokens` tokens each."""
        return plan_blocks(self.schedule, blocks=len(self.towers.vision), frames=frames, tokens=tokens)

    def frame_tokens(self, maps_or_pixels: Tensor) -> Tensor:
        """Input of the first block (n, 1 + P, w) of preprocessed frames."""
        return self.towers.vision_tokens(maps_or_pixels)

    def encode_tokens(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Unit vectors (B, d) of clips.

            v = normalise(mean over frames f of normalise(head(CLS_f)))

        Args:
            tokens: (B, F, 1 + P, w) input of the first block, frame by frame in their order.
            mask: (B, F) bool, frames that are real; those at a clip's end may repeat the last one. None = all.

        Raises:
            VideoError: more frames than there are positions for.
        """
        batch, frames = tokens.shape[:2]
        padded = self.schedule.padded(frames)
        if padded > self.frames:
            raise VideoError(f"clips of {frames} frames; valid: 1..{self.frames}, for which this encoder was made")
        tokens = torch.cat([tokens, tokens[:, -1:].expand(-1, padded - frames, -1, -1)], dim=1)
        real = torch.ones(batch, frames, dtype=torch.bool, device=tokens.device) if mask is None else mask
        real = F.pad(real, (0, padded - frames))
        per_frame = F.normalize(self.towers.vision_head(self.cls_tokens(tokens)), dim=-1)
        mean = (per_frame * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)
        return F.normalize(mean, dim=-1)

    def cls_tokens(self, tokens: Tensor) -> Tensor:
        """The CLS token of every frame (B, F, w) behind the last block; tokens (B, F, 1 + P, w), F a multiple of the schedule's."""
        batch, frames = tokens.shape[:2]
        x = tokens.flatten(0, 1)
        size: Tensor | None = None  # None while every token stands for itself: the attention then is the model's own
        positions = iter(self.positions)
        for block, plan in zip(self.towers.vision_blocks(), self.plans(frames, tokens.shape[2]), strict=True):
            if plan.joined:
                x, size = _join(x, size, plan, next(positions), batch)
            x, size = _forward(block, x, size, plan)
        return x[:, : plan.cls].reshape(batch, frames, -1)

    def encode_text(self, texts: Sequence[str]) -> Tensor:
        """Unit vectors (C, d) of sentences."""
        return F.normalize(self.towers.encode_text(texts), dim=-1)

    def scale(self) -> Tensor:
        """exp(logit_scale) of the frozen model, at most 100."""
        scale: Tensor = self.towers.frozen.logit_scale  # type: ignore[assignment]  # of the interface, not of `Towers`
        return scale.exp().clamp(max=MAX_SCALE)


def _join(x: Tensor, size: Tensor | None, plan: BlockPlan, positions: Tensor, batch: int) -> tuple[Tensor, Tensor | None]:
    """ClipMe before the attention: clips (B * joined * clips, T, w) become (B * clips, joined * T, w), CLS tokens in front, and merge."""
    cls = plan.cls // plan.joined
    metric = _side_by_side(x, plan.joined, cls)  # tokens are compared as they come in, without their place in time
    placed = x.view(batch, plan.clips * plan.joined, *x.shape[1:]) + positions[: plan.clips * plan.joined, None]
    x = _side_by_side(placed.view_as(x), plan.joined, cls)
    size = None if size is None else _side_by_side(size, plan.joined, cls)
    return _merged(x, size, metric, plan.cls, plan.across)


def _forward(block: Block, x: Tensor, size: Tensor | None, plan: BlockPlan) -> tuple[Tensor, Tensor | None]:
    """A block with proportional attention, softmax(Q K^T / sqrt(h) + log size) V, and a merge on its keys between attention and MLP."""
    query, key, value = block.qkv(block.ln_1(x))
    bias = None if size is None else size.log().transpose(1, 2)[:, None]
    x = x + block.proj(attention(query, key, value, block.n_heads, bias=bias))
    metric = key.unflatten(-1, (block.n_heads, -1)).mean(dim=-2)
    x, size = _merged(x, size, metric, plan.cls, plan.inside)
    return x + block.mlp(block.ln_2(x)), size


def _merged(x: Tensor, size: Tensor | None, metric: Tensor, cls: int, removed: int) -> tuple[Tensor, Tensor | None]:
    if not removed:
        return x, size
    return merge(x, torch.ones_like(x[..., :1]) if size is None else size, match(metric, cls, removed))


def _side_by_side(x: Tensor, joined: int, cls: int) -> Tensor:
    """(n * joined, T, w) -> (n, joined * T, w): the CLS tokens of all, then their patches, each in the order of time."""
    clips = x.unflatten(0, (-1, joined))
    return torch.cat([clips[:, :, :cls].flatten(1, 2), clips[:, :, cls:].flatten(1, 2)], dim=1)


def _width(model: Towers) -> int:
    """Of a vision token, from the norm in front of the first block."""
    weight = next(iter(model.vision_blocks())).ln_1.weight  # type: ignore[attr-defined]
    return math.prod(weight.shape)
