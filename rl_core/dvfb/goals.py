"""What B is given: the next state, or a pair of states (`DVFBConfig.goal`)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rl_core.dvfb.config import Goal


def goal_size(goal: Goal, observation: int) -> int:
    """Numbers in B's input."""
    return observation if goal == "canonical" else 2 * observation


def reached_goal(goal: Goal, observation: Tensor, next_observation: Tensor) -> Tensor:
    """The goal that a transition reached, (n, S), (n, S) -> (n, G): what inference and the contrastive encoder give B."""
    return next_observation if goal == "canonical" else torch.cat([observation, next_observation], -1)


@dataclass(frozen=True, kw_only=True)
class GoalInputs:
    """B's inputs for one batch, (n, G) each.

    Attributes:
        online: of the online B in the FB loss.
        target: of the target B there; another goal than `online` only for `pair_compat`.
        reached: the transition's own.
        shuffled: of other rows, for mixed z; None where `reached` in another order is meant.
    """

    online: Tensor
    target: Tensor
    reached: Tensor
    shuffled: Tensor | None = None


def goal_inputs(goal: Goal, observation: Tensor, next_observation: Tensor, later: Tensor | None, order: Tensor) -> GoalInputs:
    """The inputs of a batch.

    Args:
        goal: the variant.
        observation: s (n, S).
        next_observation: s' (n, S).
        later: s'' (n, S), one step after s'; used by `pair_compat` alone.
        order: (n,) a permutation of the rows.
    """
    reached = reached_goal(goal, observation, next_observation)
    if goal != "pair_compat":
        return GoalInputs(online=reached, target=reached, reached=reached)
    if later is None:
        raise ValueError("goal 'pair_compat' needs `later_observation` in the batch, see LaterSampler")
    return GoalInputs(
        online=torch.cat([observation, later], -1),
        target=torch.cat([next_observation, later], -1),
        reached=reached,
        shuffled=torch.cat([observation, observation[order]], -1),
    )
