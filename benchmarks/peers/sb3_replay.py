"""stable-baselines3's ReplayBuffer, filled with given transitions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer


def filled_sb3_replay(values: Mapping[str, NDArray[np.float32]]) -> ReplayBuffer:
    """A CPU buffer with one environment that holds `values` (columns as in `rl_core.data.replay`), as SAC and TD3 use it."""
    count, observation_size = values["observation"].shape
    observation = spaces.Box(-np.inf, np.inf, (observation_size,), np.float32)
    action = spaces.Box(-1.0, 1.0, (values["action"].shape[1],), np.float32)
    replay = ReplayBuffer(count, observation, action, device="cpu", n_envs=1, handle_timeout_termination=True)
    for row in range(count):
        replay.add(
            values["observation"][row : row + 1],
            values["next_observation"][row : row + 1],
            values["action"][row : row + 1],
            values["reward"][row : row + 1],
            values["terminal"][row : row + 1],
            [{}],
        )
    return replay
