"""The reward-free worlds by name: one at a time, or many with flat observations.

Each carries `rewards`, its named rewards, and `columns`, where what lies in a flat observation. Without a reward every step gives 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from rl_core.errors import ArmstackError
from sim_envs.reward_free.labelled import FlatObservation, Labelled
from sim_envs.reward_free.rewards import Array, Reward, find_reward
from sim_envs.vector import ThreadedVectorEnv

MAZES = {"FourRooms": "four_rooms", "UMaze": "u_maze"}


def _rooms(layout: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    from sim_envs.rooms.env import RoomsEnv

    return RoomsEnv(layout, **kwargs)


def _suite(domain: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    from sim_envs.dm_control_suite.env import SuiteEnv

    return SuiteEnv(domain, **kwargs)


def _arm(world: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    from sim_envs.arm.reward_free import ExploreArm

    return ExploreArm(world, **kwargs)


def _pendulum(**kwargs: Any) -> gymnasium.Env[Any, Any]:
    from sim_envs.reward_free.pendulum import PendulumEnv

    return PendulumEnv(**kwargs)


WORLDS: dict[str, Callable[..., gymnasium.Env[Any, Any]]] = {
    **{name: partial(_rooms, layout) for name, layout in MAZES.items()},
    **{f"Explore{domain.title()}": partial(_suite, domain) for domain in ("walker", "quadruped", "hopper", "reacher")},
    "ExplorePendulum": _pendulum,
    "ExploreReach": partial(_arm, "reach"),
    "ExplorePush": partial(_arm, "push"),
}
"""Name, as in `armstack/NAME-v0`, -> what makes one; a simulator is imported when its world is made."""


def make(world: str, *, reward: str | Reward | None = None, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """One world.

    Args:
        world: a name of `WORLDS`.
        reward: labels each step: a name of the world's `rewards`, `FILE.py:NAME` (see `find_reward`: it runs that file) or a function.
        kwargs: the world's own: `horizon`, `render_mode`, ...

    Raises:
        ArmstackError: unknown world or reward; names the valid ones.
    """
    env = _find(world)(**kwargs)
    found = _reward(env.get_wrapper_attr("rewards"), reward)
    return env if found is None else Labelled(env, found)


def make_vector(world: str, num_envs: int, *, reward: str | Reward | None = None, **kwargs: Any) -> VectorEnv[Any, Any, Any]:
    """`num_envs` worlds with flat float32 observations (num_envs, D) and actions (num_envs, A) in [-1, 1]; else as `make`.

    A world whose episode has ended is reset by the next step (`AutoresetMode.NEXT_STEP`), which is no transition: drop it.
    """
    if world in MAZES:
        from sim_envs.rooms.env import RoomsVectorEnv
        from sim_envs.rooms.rewards import REWARDS

        return RoomsVectorEnv(MAZES[world], num_envs, reward=_reward(REWARDS[MAZES[world]], reward), **kwargs)
    make_one = _find(world)

    def flat_world() -> gymnasium.Env[Any, Any]:
        env = make_one(**kwargs)
        return FlatObservation(env) if env.has_wrapper_attr("contract") else env

    return FlatVectorEnv([flat_world] * num_envs, reward)


class FlatVectorEnv(ThreadedVectorEnv):
    """A `ThreadedVectorEnv` of flat reward-free worlds that labels its steps, all worlds' at once.

    Attributes:
        rewards: the worlds' named rewards.
        columns: what is where in an observation.
    """

    def __init__(self, env_fns: list[Callable[[], gymnasium.Env[Any, Any]]], reward: str | Reward | None) -> None:
        super().__init__(env_fns)
        self.rewards, self.columns = (self.envs[0].get_wrapper_attr(name) for name in ("rewards", "columns"))
        self._reward = _reward(self.rewards, reward)
        self._before = np.empty(self.observation_space.shape or (), np.float32)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """See `ThreadedVectorEnv.reset`."""
        self._before, infos = super().reset(seed=seed, options=options)
        return self._before, infos

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """See `ThreadedVectorEnv.step`; the rewards are the label's, 0 for a reset."""
        ended = self._ended
        observations, rewards, terminated, truncated, infos = super().step(actions)
        if self._reward is not None:
            taken = infos.get("action_applied", np.clip(np.asarray(actions, np.float32), -1.0, 1.0))
            rewards = np.where(ended, 0.0, self._reward(self._before, taken, observations))
        self._before = observations
        return observations, rewards, terminated, truncated, infos


def _find(world: str) -> Callable[..., gymnasium.Env[Any, Any]]:
    if world not in WORLDS:
        raise ArmstackError(f"world {world!r}, valid: {', '.join(sorted(WORLDS))}")
    return WORLDS[world]


def _reward(rewards: Any, reward: str | Reward | None) -> Reward | None:
    return find_reward(reward, rewards) if isinstance(reward, str) else reward
