"""Reward mapping: the task's rewards on the scale of the reward that the skill asks for, so that both values of the actor weigh alike."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rl_core.dvfb.moments import RunningMoments

SMALLEST = 1e-8


class RewardMapping(nn.Module):
    """r' = r |m_fb| / (|m_r| + 1e-8), with m_fb and m_r the running means of the implicit reward and of the task's [code].

    The authors divide without the magnitudes; a negative mean of either would then turn the task around.
    """

    def __init__(self) -> None:
        super().__init__()
        self.implicit, self.task = RunningMoments(), RunningMoments()

    @property
    def ratio(self) -> Tensor:
        """|m_fb| / (|m_r| + 1e-8), ()."""
        return self.implicit.mean.abs() / (self.task.mean.abs() + SMALLEST)

    @torch.no_grad()
    def forward(self, reward: Tensor, implicit: Tensor) -> Tensor:
        """Takes a batch's rewards and implicit rewards, (n,) each, into the means; gives r' (n,)."""
        self.implicit.update(implicit)
        self.task.update(reward)
        return reward * self.ratio.to(reward.dtype)
