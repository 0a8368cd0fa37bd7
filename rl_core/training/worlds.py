"""Worlds by name. What rl_core needs of a world: a Gymnasium env whose observations are dicts of contract channels.

Worlds of `sim_envs` and `robot_bridge` already are that and carry `.contract`; other Gymnasium environments with flat
observations and bounded actions are wrapped so that they become it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rl_core.contract import Action, Channel, RobotContract
from rl_core.errors import ArmstackError

MakeEnv = Callable[[], gymnasium.Env]
_OURS = "armstack/"


class WorldError(ArmstackError):
    """A world that cannot be made or used; says what is missing."""


def make_world(env_id: str, **kwargs: Any) -> gymnasium.Env:
    """The world `env_id`: `armstack/Lift-v0` (short for `sim_envs:armstack/Lift-v0`) or any Gymnasium id.

    Raises:
        WorldError: no such world, or one whose observations or actions cannot be described by a contract.
    """
    full_id = f"sim_envs:{env_id}" if env_id.startswith(_OURS) else env_id
    try:
        env = gymnasium.make(full_id, **kwargs)
    except (gymnasium.error.Error, ModuleNotFoundError) as error:
        raise WorldError(f"world {env_id!r}: {error}") from error
    return env if env.has_wrapper_attr("contract") else BoxWorld(env, env_id)


def contract_of(env: gymnasium.Env) -> RobotContract:
    """The contract a world carries, under any wrappers.

    Raises:
        WorldError: it carries none.
    """
    if not env.has_wrapper_attr("contract"):
        raise WorldError(f"{env} has no .contract; make it with make_world")
    return env.get_wrapper_attr("contract")


class BoxWorld(gymnasium.Wrapper):
    """A flat environment as a world: observation {"state": (S,)}, action (A,) in [-1, 1] mapped on the env's box."""

    def __init__(self, env: gymnasium.Env, name: str) -> None:
        super().__init__(env)
        box, actions = env.observation_space, env.action_space
        if not (isinstance(box, spaces.Box) and len(box.shape) == 1):
            raise WorldError(f"world {name!r}: observation {box}, valid: a flat Box, or a world with a .contract")
        if not (isinstance(actions, spaces.Box) and len(actions.shape) == 1 and actions.is_bounded()):
            raise WorldError(f"world {name!r}: action {actions}, valid: a flat bounded Box")
        self._low, self._high = actions.low.astype(np.float64), actions.high.astype(np.float64)
        self.observation_space = spaces.Dict({"state": box})
        self.action_space = spaces.Box(-1.0, 1.0, actions.shape, np.float32)
        period = float(getattr(env.unwrapped, "dt", 0.05))
        self.contract = RobotContract(
            robot=name,
            observation=(Channel(name="state", names=tuple(f"s{i}" for i in range(box.shape[0]))),),
            action=Action(
                names=tuple(f"a{i}" for i in range(actions.shape[0])),
                meaning="absolute",
                space="joint",
                scale=tuple((self._high - self._low) / 2),
                units=("1",) * actions.shape[0],
                frame="",
                period_s=min(max(period, 0.002), 0.1),
            ),
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """See `gymnasium.Env.reset`."""
        observation, info = self.env.reset(seed=seed, options=options)
        return {"state": observation}, info

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """See `gymnasium.Env.step`."""
        scaled = self._low + (np.asarray(action, dtype=np.float64) + 1.0) * 0.5 * (self._high - self._low)
        observation, reward, terminated, truncated, info = self.env.step(scaled.astype(self.env.action_space.dtype))
        return {"state": observation}, float(reward), terminated, truncated, info
