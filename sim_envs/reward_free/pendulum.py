"""Gymnasium's Pendulum-v1 as a reward-free world: swinging up as a label, not as a reward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import RescaleAction
from numpy.typing import NDArray

from sim_envs.reward_free.rewards import Array, Reward, columns

COLUMNS = columns({"cosine": 1, "sine": 1, "angular_velocity": 1})
MAX_TORQUE = 2.0
MAX_SPEED = 8.0
WORST = -(np.pi**2 + 0.1 * MAX_SPEED**2 + 0.001 * MAX_TORQUE**2)
"""Pendulum-v1's lowest reward: hanging down, at full speed, at full torque."""
UPRIGHT, SLOW = np.cos(np.deg2rad(12.0)), 1.0
"""Balanced is: within 12 degrees of upright, slower than 1 rad/s."""


def cost(observation: Array, action: Array, next_observation: Array) -> Array:
    """Pendulum-v1's own reward, -(angle^2 + 0.1 velocity^2 + 0.001 torque^2) of the state before the action, in [-16.27, 0]."""
    angle = np.arctan2(observation[..., 1], observation[..., 0])
    torque = MAX_TORQUE * action[..., 0]
    return -(np.square(angle) + 0.1 * np.square(observation[..., 2]) + 0.001 * np.square(torque))


def swing_up(observation: Array, action: Array, next_observation: Array) -> Array:
    """`cost` in [0, 1]: 1 upright, at rest, without torque."""
    return 1.0 - cost(observation, action, next_observation) / WORST


def balanced(observation: Array, action: Array, next_observation: Array) -> Array:
    """1 where the pendulum is upright and slow after the action, 0 elsewhere."""
    upright, velocity = next_observation[..., 0], next_observation[..., 2]
    return ((upright > UPRIGHT) & (np.abs(velocity) < SLOW)).astype(np.float64)


REWARDS: Mapping[str, Reward] = {"cost": cost, "swing_up": swing_up, "balanced": balanced}


class PendulumEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pendulum-v1, 200 steps, actions in [-1, 1] times 2 N m, reward 0. It draws nothing.

    Attributes:
        rewards: its named rewards.
        columns: what is where in an observation.
    """

    def __init__(self, *, horizon: int = 200) -> None:
        pendulum = gymnasium.make("Pendulum-v1", max_episode_steps=horizon, disable_env_checker=True)
        super().__init__(RescaleAction(pendulum, np.float32(-1.0), np.float32(1.0)))
        self.rewards, self.columns = REWARDS, COLUMNS

    def step(self, action: NDArray[Any]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """See `gymnasium.Env.step`. Actions beyond [-1, 1] are clipped.

        Raises:
            ValueError: an action that is not one finite number.
        """
        action = np.asarray(action, np.float32)
        if action.shape != (1,) or not np.isfinite(action).all():
            raise ValueError(f"action {action}, valid: one finite number")
        observation, _, terminated, truncated, info = self.env.step(np.clip(action, -1.0, 1.0))
        return observation, 0.0, terminated, truncated, info
