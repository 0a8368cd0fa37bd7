"""Hindsight experience replay: goals that were reached later in the same episode."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict

from rl_core.data.episode_replay import EpisodeReplay
from rl_core.data.samplers.base import Sampler
from rl_core.data.samplers.windows import choose

Array = NDArray[np.float32]


class HindsightSampler(Sampler):
    """Transitions of which a share k / (k + 1) has its goal replaced by one achieved later in its episode.

    The `future` strategy of Andrychowicz et al., "Hindsight Experience Replay" (2017), section 3.3: the new goal of step t is
    achieved(s_t') for t' uniform over t + 1 .. T, and the reward is computed anew for it.

    Args:
        replay: the episodes, their goal inside `observation`; may grow meanwhile.
        achieved: observation (n, O) -> goal reached there (n, G).
        with_goal: observation (n, O), goal (n, G) -> observation with that goal (n, O).
        reward: goal reached by the next observation (n, G), goal (n, G) -> reward (n,).
        batch_size: rows in `next_batch`.
        seed: seed of the generator.
        relabelled: k, relabelled transitions per original one; the paper's default is 4.
        terminal: goal reached, goal -> whether the task ends there (n,); None where reaching a goal never ends the episode.
    """

    def __init__(
        self,
        replay: EpisodeReplay,
        *,
        achieved: Callable[[Array], Array],
        with_goal: Callable[[Array, Array], Array],
        reward: Callable[[Array, Array], Array],
        batch_size: int,
        seed: int,
        relabelled: int = 4,
        terminal: Callable[[Array, Array], Array] | None = None,
    ) -> None:
        super().__init__(batch_size, seed)
        if relabelled < 0:
            raise ValueError(f"relabelled {relabelled}, valid: 0 or more")
        self.replay, self.relabelled = replay, relabelled
        self._achieved, self._with_goal, self._reward, self._terminal = achieved, with_goal, reward, terminal

    def sample(self, count: int) -> TensorDict:
        """See `Sampler.sample`; `relabelled` (B,) is 1 where the goal was replaced."""
        with self.replay.lock:
            first, steps, weight = self.replay.spans()
            chosen = choose(self.rng, steps * weight, count)
            first, steps = first[chosen], steps[chosen]
            time = self.rng.integers(0, steps)
            later = self.rng.integers(time + 1, steps + 1)
            replaced = self.rng.random(count) < self.relabelled / (self.relabelled + 1)
            batch = self.replay.gather(first + time)
            following = self.replay.gather(first + time + 1)["observation"].numpy()
            future = self.replay.gather(first + later)["observation"].numpy()
        rows = np.flatnonzero(replaced)
        goal = self._achieved(future[rows])
        reached = self._achieved(following[rows])
        observation = batch["observation"].numpy()
        observation[rows] = self._with_goal(observation[rows], goal)
        following = following.copy()
        following[rows] = self._with_goal(following[rows], goal)
        batch["reward"].numpy()[rows] = self._reward(reached, goal)
        batch["terminal"].numpy()[rows] = 0.0 if self._terminal is None else self._terminal(reached, goal)
        batch["next_observation"] = torch.from_numpy(following)
        batch["relabelled"] = torch.from_numpy(replaced.astype(np.float32))
        return batch
