"""SkillWorld: a world that tells a skill to follow, so that it is stored with every transition."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rl_core.contract import Channel, RobotContract
from rl_core.dvfb.policy import SKILL
from rl_core.training.worlds import contract_of

DrawSkill = Callable[[np.random.Generator], NDArray[np.float32]]


def with_told_skill(contract: RobotContract, size: int) -> RobotContract:
    """The contract whose last observation channel is the skill."""
    channel = Channel(name=SKILL, kind="latent", names=tuple(f"z{i}" for i in range(size)), unit="1")
    return dataclasses.replace(contract, observation=(*contract.observation, channel), condition=())


class SkillWorld(gymnasium.Wrapper):
    """A world with one channel more, `skill`, drawn at the reset and every `skill_steps` steps from the episode's seed.

    Args:
        env: with a contract.
        size: numbers in a skill.
        draw: draws one.
        skill_steps: steps with one skill.
    """

    def __init__(self, env: gymnasium.Env, size: int, draw: DrawSkill, skill_steps: int) -> None:
        super().__init__(env)
        self.contract = with_told_skill(contract_of(env), size)
        assert isinstance(env.observation_space, spaces.Dict)
        self.observation_space = spaces.Dict({**env.observation_space.spaces, SKILL: spaces.Box(-np.inf, np.inf, (size,), np.float32)})
        self._draw, self._skill_steps = draw, skill_steps
        self._rng = np.random.default_rng()
        self._skill, self._age = np.zeros(size, np.float32), 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """See `gymnasium.Env.reset`."""
        observation, info = self.env.reset(seed=seed, options=options)
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._skill, self._age = self._draw(self._rng), 0
        return {**observation, SKILL: self._skill}, info

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """See `gymnasium.Env.step`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._age += 1
        if self._age % self._skill_steps == 0:
            self._skill = self._draw(self._rng)
        return {**observation, SKILL: self._skill}, float(reward), terminated, truncated, info
