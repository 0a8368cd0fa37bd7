"""Small learners, batches and a world with named rewards for the tests of DVFB."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from tensordict import TensorDict

from rl_core.contract import Action, Channel, RobotContract
from rl_core.dvfb import DVFBConfig, DVFBLearner

CONTRACT = RobotContract(
    robot="point",
    observation=(Channel(name="clock", names=("phase",), unit="1"), Channel(name="position", names=("x", "y"), unit="m")),
    action=Action(names=("x", "y"), meaning="delta", space="end_effector", scale=(0.1, 0.1), units=("m", "m")),
)
SMALL = {
    "z_dim": 4,
    "hidden": 16,
    "feature": 8,
    "backward_hidden": 16,
    "novelty_features": 8,
    "batch_size": 32,
    "neighbours": 3,
    "random_steps": 40,
    "replay_size": 400,
    "carried_states": 100,
    "skill_steps": 7,
}


def left(observation, action, next_observation):
    return (next_observation[:, 1] < 0).astype(np.float64)


def still(observation, action, next_observation):
    return np.square(action).sum(-1) - 3.0


def never(observation, action, next_observation):
    return np.zeros(len(action))


REWARDS = {"left": left, "still": still, "never": never}


class PointWorld(gymnasium.Env):
    """A point moved by 0.1 m a step in a box of 2 m; episodes of 20 steps; its own reward is the one asked for, else 1 a step."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, reward: Any = None, render_mode: None = None) -> None:
        self.contract, self.rewards, self.reward, self.render_mode = CONTRACT, REWARDS, REWARDS.get(reward, reward), render_mode
        box = gymnasium.spaces.Box
        self.observation_space = gymnasium.spaces.Dict({"clock": box(0, 1, (1,)), "position": box(-1, 1, (2,))})
        self.action_space = box(-1, 1, (2,))

    def _observe(self):
        return {"clock": np.array([self.steps / 20], np.float32), "position": self.position.astype(np.float32)}

    def _flat(self):
        return np.concatenate(list(self._observe().values()))[None]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.steps = self.np_random.uniform(-0.5, 0.5, 2), 0
        return self._observe(), {}

    def step(self, action):
        before = self._flat()
        self.position = np.clip(self.position + 0.1 * np.asarray(action), -1, 1)
        self.steps += 1
        reward = 1.0 if self.reward is None else float(self.reward(before, np.asarray(action)[None], self._flat())[0])
        return self._observe(), reward, False, self.steps == 20, {}


def config(**overrides) -> DVFBConfig:
    return DVFBConfig().override(**{**SMALL, **overrides})


def make_learner(seed: int = 0, **overrides) -> DVFBLearner:
    return DVFBLearner(config(**overrides), CONTRACT, seed=seed)


def make_batch(seed: int = 0, size: int = 32) -> TensorDict:
    generator = torch.Generator().manual_seed(seed)
    observation = torch.randn(size, 3, generator=generator)
    action = torch.rand(size, 2, generator=generator) * 2 - 1
    following = observation + torch.nn.functional.pad(0.1 * action, (1, 0))
    return TensorDict(
        {
            "observation": observation,
            "action": action,
            "reward": torch.full((size,), float("nan")),  # whoever reads it shows it
            "terminal": (torch.rand(size, generator=generator) < 0.1).float(),
            "next_observation": following,
            "later_observation": following + 0.1,
        },
        [size],
    )
