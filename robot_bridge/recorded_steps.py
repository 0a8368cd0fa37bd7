"""RecordedSteps: an environment that is stepped, and the Episode that this was."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from rl_core.data.episode import Episode


class RecordedSteps:
    """Steps `env` from the observation its reset gave; an action the command filter changed is kept as asked for and as applied."""

    def __init__(self, env: gymnasium.Env[Any, Any], observation: Any) -> None:
        self._env = env
        self._observations = [observation]
        self._actions: list[Any] = []
        self._applied: list[Any] = []
        self._rewards: list[float] = []

    def step(self, action: Any) -> tuple[Any, bool, bool, dict[str, Any]]:
        """Observation, terminated, truncated and info, as of `env.step`."""
        observation, reward, terminated, truncated, info = self._env.step(action)
        self._observations.append(observation)
        self._actions.append(action)
        self._applied.append(info.get("action_applied", action))
        self._rewards.append(float(reward))
        return observation, bool(terminated), bool(truncated), info

    def episode(self, **facts: Any) -> Episode:
        """What was done, one period of the contract apart, with the other fields of `Episode`."""
        period_ns = round(self._env.get_wrapper_attr("contract").action.period_s * 1e9)
        first = self._observations[0]
        return Episode(
            observations={name: np.stack([o[name] for o in self._observations]) for name in first},
            actions=np.asarray(self._actions, np.float32),
            action_applied=np.asarray(self._applied, np.float32),
            rewards=np.asarray(self._rewards, np.float32),
            stamps_ns=np.arange(len(self._observations), dtype=np.int64) * period_ns,
            **facts,
        )
