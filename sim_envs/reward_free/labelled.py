"""Labelled: a reward-free world with one of its named rewards; FlatObservation: a world of channels as one flat vector."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rl_core.contract import RobotContract
from sim_envs.reward_free.rewards import Reward

Step = tuple[Any, float, bool, bool, dict[str, Any]]


def flat(observation: Any) -> NDArray[np.float32]:
    """A flat observation as it is; channels one after the other, in the order the world gives them, which is its contract's."""
    return np.concatenate(list(observation.values())) if isinstance(observation, dict) else observation


class Labelled(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Gives each step the value of `reward`, and `info["success"]`, whether it is 1."""

    def __init__(self, env: gymnasium.Env[Any, Any], reward: Reward) -> None:
        super().__init__(env)
        self._reward = reward
        self._before: NDArray[np.float32] = np.empty(0, np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """See `gymnasium.Env.reset`."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._before = flat(observation)
        return observation, info

    def step(self, action: NDArray[Any]) -> Step:
        """See `gymnasium.Env.step`; what is labelled is the action that was applied, or the action clipped to [-1, 1]."""
        observation, _, terminated, truncated, info = self.env.step(action)
        after = flat(observation)
        taken = info.get("action_applied", np.clip(np.asarray(action, np.float32), -1.0, 1.0))
        value = float(self._reward(self._before[None], taken[None], after[None])[0])
        self._before = after
        return observation, value, terminated, truncated, {**info, "success": value >= 1.0}


class FlatObservation(gymnasium.ObservationWrapper[Any, Any, Any]):
    """The channels of a world with a contract, in contract order, as one float32 vector."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        contract: RobotContract = env.get_wrapper_attr("contract")
        self.observation_space = spaces.Box(-np.inf, np.inf, (contract.observation_size,), np.float32)

    def observation(self, observation: dict[str, NDArray[np.float32]]) -> NDArray[np.float32]:
        """See `flat`."""
        return flat(observation)
