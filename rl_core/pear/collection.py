"""Episodes of a hierarchy in goal worlds, all rows at once, and what each level learns from one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from rl_core.pear.config import PEARConfig
from rl_core.pear.policy import HierarchicalPolicy
from rl_core.pear.worlds import DESIRED_GOAL, Array, GoalSpace, GoalWorlds
from rl_core.training.config import ConfigError


@dataclass(frozen=True, kw_only=True)
class Episodes:
    """n episodes of S steps in D decisions of c steps each; a flat policy's episode is one decision, whose subgoal is the goal.

    Attributes:
        space: the goal space.
        observation: (S + 1, n, O).
        achieved: (S + 1, n, G).
        goal: (n, G).
        actions: (S, n, A).
        decisions: (D, n, H) of the higher level, H = 0 without one.
        subgoals: (D, n, G) in the goal's units.
    """

    space: GoalSpace
    observation: Array
    achieved: Array
    goal: Array
    actions: Array
    decisions: Array
    subgoals: Array

    @property
    def ends(self) -> NDArray[np.int64]:
        """(D + 1,) states at which decisions are made, and the last one."""
        return np.arange(len(self.subgoals) + 1) * (len(self.actions) // len(self.subgoals))

    @property
    def hits(self) -> NDArray[np.bool_]:
        """(D, n): the subgoal was reached where its c steps ended."""
        return self.space.reached(self.achieved[self.ends[1:]], self.subgoals)

    @property
    def success(self) -> NDArray[np.bool_]:
        """(n,): the goal was reached at the last state."""
        return self.space.reached(self.achieved[-1], self.goal)

    def higher(self, row: int) -> Mapping[str, Array]:
        """Row `row` as an episode of D decisions, for the higher level's replay."""
        at = self.ends
        reward = self.space.reward(self.achieved[at[1:], row], self.goal[row])
        goals = np.broadcast_to(self.goal[row], (len(at), self.space.size))
        observation = np.concatenate([self.observation[at, row], self.achieved[at, row], goals], axis=1)
        return {"observation": observation, "action": self.decisions[:, row], "reward": reward}

    def lower(self, row: int) -> Iterator[Mapping[str, Array]]:
        """Row `row` as an episode a subgoal, for the lower level's replay."""
        for decision, (start, stop) in enumerate(zip(self.ends[:-1], self.ends[1:], strict=True)):
            achieved, subgoal = self.achieved[start : stop + 1, row], self.subgoals[decision, row]
            goals = np.broadcast_to(subgoal, achieved.shape)
            yield {
                "observation": np.concatenate([self.observation[start : stop + 1, row], achieved, goals], axis=1),
                "action": self.actions[start:stop, row],
                "reward": self.space.reward(achieved[1:], subgoal),
            }


def decisions_of(config: PEARConfig, horizon: int) -> tuple[int, int]:
    """(D, steps of each) in an episode of at most `horizon` steps.

    Raises:
        ConfigError: not even one decision fits.
    """
    if "high" not in config.switches.learned:
        return 1, horizon
    if config.primitive_steps > horizon:
        raise ConfigError(f"PEARConfig.primitive_steps: {config.primitive_steps}, valid: 1 .. the world's horizon ({horizon})")
    return horizon // config.primitive_steps, config.primitive_steps


def collect(worlds: GoalWorlds, policy: HierarchicalPolicy, seeds: Sequence[int]) -> Episodes:
    """One episode a row: row i's world and exploration depend on `seeds[i]` alone."""
    decisions, steps = decisions_of(policy.config, worlds.horizon)
    seen = worlds.reset(seeds)
    goal = torch.from_numpy(seen[DESIRED_GOAL])
    state = policy.reset(seeds)
    observation, achieved, actions = [seen["observation"]], [seen["achieved_goal"]], []
    chosen, subgoals = [], []
    for step in range(decisions * steps):
        values, state = policy.step(torch.from_numpy(observation[-1]), goal, state)
        if step % steps == 0:
            chosen.append(state.tensors["decision"].numpy())
            subgoals.append(policy.subgoal(state, goal).numpy())
        seen = worlds.step(values.numpy())
        observation.append(seen["observation"])
        achieved.append(seen["achieved_goal"])
        actions.append(values.numpy())
    return Episodes(
        space=worlds.goal,
        observation=np.stack(observation),
        achieved=np.stack(achieved),
        goal=goal.numpy(),
        actions=np.stack(actions),
        decisions=np.stack(chosen),
        subgoals=np.stack(subgoals),
    )
