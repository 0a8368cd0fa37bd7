"""Judging a hierarchy: fixed seeds, deterministic levels, success at the last state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rl_core.pear.collection import Episodes, collect
from rl_core.pear.policy import HierarchicalPolicy
from rl_core.pear.worlds import GoalWorlds, MakeGoalWorlds
from rl_core.policy import Policy


@dataclass(frozen=True, kw_only=True)
class GoalFigures:
    """What n episodes came to.

    Attributes:
        success_rate: share of episodes whose goal was reached at the last state.
        hit_rate: share of subgoals reached where their c steps ended; None without a learned lower level under a higher one.
        final_distance: mean distance from the goal at the last state, in the goal's units.
        episodes: how many.
    """

    success_rate: float
    hit_rate: float | None
    final_distance: float
    episodes: int

    def metrics(self) -> dict[str, float]:
        """Under the names all methods log."""
        figures = {"eval/success_rate": self.success_rate, "eval/final_distance": self.final_distance}
        return figures if self.hit_rate is None else {**figures, "eval/hit_rate": self.hit_rate}


def evaluate_goals(policy: HierarchicalPolicy, worlds: GoalWorlds, seeds: Sequence[int]) -> GoalFigures:
    """One episode a seed, `worlds.n` at a time; a last round that is not full repeats its last seed, which is not counted again."""
    parts: list[tuple[Episodes, int]] = []
    for first in range(0, len(seeds), worlds.n):
        chosen = list(seeds[first : first + worlds.n])
        parts.append((collect(worlds, policy, chosen + chosen[-1:] * (worlds.n - len(chosen))), len(chosen)))
    hierarchical = policy.low is not None and policy.high is not None
    return GoalFigures(
        success_rate=float(np.concatenate([part.success[:count] for part, count in parts]).mean()),
        hit_rate=float(np.concatenate([part.hits[:, :count].ravel() for part, count in parts]).mean()) if hierarchical else None,
        final_distance=float(
            np.concatenate([np.linalg.norm(part.achieved[-1] - part.goal, axis=-1)[:count] for part, count in parts]).mean()
        ),
        episodes=len(seeds),
    )


class GoalEvaluator:
    """The Trainer's evaluator in goal worlds: the same seeds at every call.

    Args:
        make_worlds: makes worlds of n rows.
        seeds: see `rl_core.training.evaluation.evaluation_seeds`.
        rows: worlds stepped together, at most.
    """

    def __init__(self, make_worlds: MakeGoalWorlds, seeds: Sequence[int], *, rows: int = 50) -> None:
        self.seeds = list(seeds)
        self.worlds = make_worlds(min(rows, len(self.seeds)))

    def evaluate(self, policy: Policy, step: int) -> Mapping[str, float]:
        """`eval/success_rate`, `eval/final_distance` and, in two levels, `eval/hit_rate`."""
        assert isinstance(policy, HierarchicalPolicy)
        return evaluate_goals(policy, self.worlds, self.seeds).metrics()

    def close(self) -> None:
        """Closes the worlds."""
        self.worlds.close()
