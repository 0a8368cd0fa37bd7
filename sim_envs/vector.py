"""ThreadedVectorEnv: many worlds on all cores in one process.

MuJoCo and the compiled controller release Python's lock, so threads step worlds side by side with no copies between processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array

Observations = Any


class ThreadedVectorEnv(VectorEnv[Any, np.ndarray, np.ndarray]):
    """Steps `len(env_fns)` equal environments with a pool of threads.

    An environment whose episode has ended is reset by the next `step`, whose action for it is ignored and whose reward is 0
    (`AutoresetMode.NEXT_STEP`, as Gymnasium's own vector environments).

    Args:
        env_fns: one factory an environment; all must have equal spaces.
        threads: None takes one a core, at most one an environment.

    Raises:
        ValueError: no factories, or spaces that differ.
    """

    def __init__(self, env_fns: Sequence[Callable[[], gymnasium.Env[Any, Any]]], *, threads: int | None = None) -> None:
        if not env_fns:
            raise ValueError("a vector environment needs at least one factory, found none")
        self.envs = [make() for make in env_fns]
        first = self.envs[0]
        for i, env in enumerate(self.envs):
            if (env.observation_space, env.action_space) != (first.observation_space, first.action_space):
                raise ValueError(f"environment {i} has other spaces than environment 0")
        self.num_envs = len(self.envs)
        self.metadata = {**first.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space, self.single_action_space = first.observation_space, first.action_space
        self.observation_space = batch_space(first.observation_space, self.num_envs)
        self.action_space = batch_space(first.action_space, self.num_envs)
        count = min(self.num_envs, threads or len(os.sched_getaffinity(0)))
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="sim_envs")
        self._shares = [range(start, self.num_envs, count) for start in range(count)]
        self._ended = np.ones(self.num_envs, dtype=bool)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Resets all; an integer seed gives environment i the seed `seed + i`."""
        seeds: list[int | None] = [None] * self.num_envs
        if isinstance(seed, int):
            seeds = [seed + i for i in range(self.num_envs)]
        elif seed is not None:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"{len(seeds)} seeds for {self.num_envs} environments")
        results = self._each(lambda i: self.envs[i].reset(seed=seeds[i], options=options))
        self._ended[:] = False
        return self._stack([obs for obs, _ in results]), self._infos([info for _, info in results])

    def step(self, actions: np.ndarray) -> tuple[Observations, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One policy period of every environment.

        Raises:
            FaultyAction: as soon as all have been stepped, if one of the actions was faulty.
        """
        results = self._each(lambda i: self._step_one(i, actions[i]))
        observations, rewards, terminations, truncations, infos = zip(*results, strict=True)
        terminated, truncated = np.array(terminations, dtype=bool), np.array(truncations, dtype=bool)
        self._ended = terminated | truncated
        return self._stack(observations), np.array(rewards, dtype=np.float64), terminated, truncated, self._infos(infos)

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the threads and closes the environments."""
        self._pool.shutdown()
        for env in self.envs:
            env.close()

    def _step_one(self, i: int, action: np.ndarray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self._ended[i]:
            observation, info = self.envs[i].reset()
            return observation, 0.0, False, False, info
        observation, reward, terminated, truncated, info = self.envs[i].step(action)
        return observation, float(reward), terminated, truncated, info

    def _each(self, work: Callable[[int], Any]) -> list[Any]:
        """`work(i)` for every environment, in their order; the first error is raised after all have finished."""
        results: list[Any] = [None] * self.num_envs

        def run(share: range) -> None:
            for i in share:
                results[i] = work(i)

        futures = [self._pool.submit(run, share) for share in self._shares]
        errors = [future.exception() for future in futures]
        for error in errors:
            if error is not None:
                raise error
        return results

    def _stack(self, observations: Sequence[Any]) -> Observations:
        empty: Any = create_empty_array(self.single_observation_space, self.num_envs)
        return concatenate(self.single_observation_space, observations, empty)

    def _infos(self, infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for i, info in enumerate(infos):
            merged = self._add_info(merged, info, i)
        return merged
