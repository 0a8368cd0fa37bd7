"""The fair opponent of PEAR's inner loop: stable-baselines3's SAC with its HerReplayBuffer in the same maze.

Same world, horizon, networks, batch, discount, fixed entropy weight, learning rates and hindsight share; one step of the target networks
after as many gradient steps as ours. Its observations are a dict as its buffer asks for, and it normalises nothing, which ours does.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import SAC
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import TrainFreq, TrainFrequencyUnit
from stable_baselines3.her import HerReplayBuffer

from rl_core.pear.config import PEARConfig
from sim_envs.maze.worlds import MazeWorlds

Seen = dict[str, NDArray[np.float32]]


class MazeGoalEnv(gymnasium.Env[Any, NDArray[np.float32]]):
    """One row of `MazeWorlds` as Gymnasium-Robotics' goal environments are; episode k is the maze of seed k."""

    def __init__(self) -> None:
        self.worlds, self.steps, self.episodes = MazeWorlds(1), 0, 0
        seen = self.worlds.reset([0])
        self.observation_space = spaces.Dict(
            {name: spaces.Box(-np.inf, np.inf, value[0].shape, np.float32) for name, value in seen.items()}
        )
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps, self.episodes = 0, self.episodes + 1
        return self._first_row(self.worlds.reset([self.episodes])), {}

    def step(self, action: NDArray[np.float32]) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        seen = self._first_row(self.worlds.step(action[None]))
        self.steps += 1
        reward = self.worlds.goal.reward(seen["achieved_goal"], seen["desired_goal"])
        return seen, float(reward), False, self.steps >= self.worlds.horizon, {}

    def compute_reward(self, achieved: NDArray[np.float32], desired: NDArray[np.float32], info: Any) -> NDArray[np.float32]:
        """Rewards (n,) of goals (n, G), which HerReplayBuffer asks for."""
        return self.worlds.goal.reward(achieved, desired)

    @staticmethod
    def _first_row(seen: Any) -> Seen:
        return {name: value[0] for name, value in seen.items()}


class SB3Maze:
    """SAC + HER with the settings of `config`.

    Args:
        config: PEAR's; of the variant `flat`, what it learns is what SAC + HER does.
    """

    def __init__(self, config: PEARConfig) -> None:
        self.horizon, self.batch_size = MazeWorlds.horizon, config.batch_size
        self.model = SAC(
            "MultiInputPolicy",
            MazeGoalEnv(),
            replay_buffer_class=HerReplayBuffer,
            replay_buffer_kwargs={"n_sampled_goal": config.relabelled_goals, "goal_selection_strategy": "future"},
            buffer_size=100_000,
            policy_kwargs={"net_arch": list(config.hidden)},
            batch_size=config.batch_size,
            learning_rate=config.actor_lr,
            gamma=config.gamma,
            ent_coef=config.entropy,
            tau=1.0 - config.polyak_kept,
            target_update_interval=config.updates_per_episode,
            learning_starts=0,
            seed=0,
            device="cpu",
        )
        _, self._callback = self.model._setup_learn(10**9)

    def run_episode(self) -> None:
        """Collects one episode with the exploring policy and stores it."""
        model = self.model
        assert isinstance(model.replay_buffer, ReplayBuffer) and model.env is not None
        frequency = TrainFreq(self.horizon, TrainFrequencyUnit.STEP)
        model.collect_rollouts(model.env, self._callback, frequency, model.replay_buffer, learning_starts=0)

    def update(self) -> None:
        """One gradient step of critics and actor on a batch with hindsight goals."""
        self.model.train(gradient_steps=1, batch_size=self.batch_size)
