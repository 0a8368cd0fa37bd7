"""Goal worlds: n rows of a world with a goal each, stepped together. What PEAR needs of a simulator; simulators implement the protocol.

Observations are dicts as in Gymnasium's GoalEnv, with a leading axis of rows:

    observation    (n, O)  the contract's channels without the goal, concatenated in contract order
    achieved_goal  (n, G)  phi(s), what the state is as a goal
    desired_goal   (n, G)  g*, the episode's goal
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from rl_core.contract import RobotContract
from rl_core.errors import ArmstackError
from rl_core.training.worlds import WorldError, make_world

Array = NDArray[np.float32]
GoalObservation = Mapping[str, Array]
Values = TypeVar("Values", Array, Tensor)

DESIRED_GOAL = "desired_goal"
"""Name of the contract's last observation channel: the episode's goal."""


class GoalWorldError(ArmstackError):
    """A goal world, or a demonstration of one, that contradicts itself; names the field, what was found and what is valid."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GoalSpace:
    """Where goals lie and when one is reached. The higher level asks for centre + half_width * u with u in [-1, 1].

    Attributes:
        centre: (G,) float32, in the goal's units.
        half_width: (G,) float32, 0 or more; a dimension of width 0 is fixed.
        threshold: delta, the Euclidean distance up to which a goal counts as reached, in the goal's units.
    """

    centre: Array
    half_width: Array
    threshold: float

    def __post_init__(self) -> None:
        for name in ("centre", "half_width"):
            values = np.array(getattr(self, name), np.float32)
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        if self.centre.ndim != 1 or self.half_width.shape != self.centre.shape or not len(self.centre):
            raise GoalWorldError(f"goal space: centre {self.centre.shape}, half_width {self.half_width.shape}; valid: (G,) both")
        if not (np.isfinite(self.centre).all() and np.isfinite(self.half_width).all() and (self.half_width >= 0).all()):
            raise GoalWorldError(f"goal space: centre {self.centre}, half_width {self.half_width}; valid: finite, half_width 0 or more")
        if not 0 < self.threshold < np.inf:
            raise GoalWorldError(f"goal space: threshold {self.threshold}, valid: finite, above 0")

    @property
    def size(self) -> int:
        """G."""
        return len(self.centre)

    def decode(self, unit: Values) -> Values:
        """u (..., G) in [-1, 1] -> goal in the goal's units."""
        return _like(self.centre, unit) + _like(self.half_width, unit) * unit

    def encode(self, goal: Values) -> Values:
        """Goal (..., G) -> u, clipped to [-1, 1]; 0 in a fixed dimension."""
        inverse = np.divide(1.0, self.half_width, out=np.zeros_like(self.half_width), where=self.half_width > 0)
        return ((goal - _like(self.centre, goal)) * _like(inverse, goal)).clip(-1.0, 1.0)

    def reached(self, achieved: Array, goal: Array) -> NDArray[np.bool_]:
        """Goals (..., G) -> (...,): within the threshold of each other."""
        return np.linalg.norm(achieved - goal, axis=-1) <= self.threshold

    def reward(self, achieved: Array, goal: Array) -> Array:
        """The sparse reward: 0 where reached, -1 elsewhere; (..., G) -> (...,)."""
        return self.reached(achieved, goal).astype(np.float32) - 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Demonstration:
    """A trajectory of N = T + 1 states to its goal. The arrays become read-only, so that no rebuild can change them.

    Attributes:
        seed: the world reset with this seed starts in `observation[0]` with the goal `goal`.
        observation: (T + 1, O) float32.
        achieved: (T + 1, G) float32, phi of each state.
        actions: (T, A) float32 in [-1, 1].
        goal: (G,) float32, g*.
    """

    seed: int
    observation: Array
    achieved: Array
    actions: Array
    goal: Array

    def __post_init__(self) -> None:
        for name in ("observation", "achieved", "actions", "goal"):
            values = np.array(getattr(self, name), np.float32)
            values.setflags(write=False)
            object.__setattr__(self, name, values)
            if not np.isfinite(values).all():
                raise GoalWorldError(f"demonstration of seed {self.seed}: {name} has numbers that are not finite")
        steps = len(self.actions)
        if not steps or len(self.observation) != steps + 1 or len(self.achieved) != steps + 1 or self.goal.shape != self.achieved.shape[1:]:
            found = [getattr(self, name).shape for name in ("observation", "achieved", "actions", "goal")]
            raise GoalWorldError(
                f"demonstration of seed {self.seed}: shapes {found}; valid: (T + 1, O), (T + 1, G), (T, A), (G,), T above 0"
            )

    def __len__(self) -> int:
        """T, its actions."""
        return len(self.actions)


class Primitives(Protocol):
    """Scripted primitives of a world (RAPS): the higher level picks one and its argument, and the script acts c steps."""

    names: tuple[str, ...]
    """K primitives, e.g. go_to, open, close."""
    arguments: int
    """P, numbers in an argument, each in [-1, 1]."""

    def act(self, observation: Array, chosen: NDArray[np.int64], argument: Array, age: NDArray[np.int64]) -> Array:
        """In `observation` (n, O), primitive `chosen` (n,) with `argument` (n, P), running since `age` (n,) steps -> actions (n, A)."""
        ...


class GoalWorlds(Protocol):
    """n rows of a goal world. A row depends on its seed alone, never on the other rows."""

    n: int
    contract: RobotContract
    """Observation: the channels of `observation` in order, then the channel `desired_goal`; history 1, no images. Action: in [-1, 1]."""
    goal: GoalSpace
    horizon: int
    """Steps of an episode. A world neither ends an episode early nor resets itself."""
    primitives: Primitives | None

    def reset(self, seeds: Sequence[int]) -> GoalObservation:
        """Every row anew, row i from `seeds[i]` (map, start and goal included); n seeds."""
        ...

    def step(self, actions: Array) -> GoalObservation:
        """One step of every row, (n, A) in [-1, 1]; raises an ArmstackError on numbers that are not finite."""
        ...

    def demonstrations(self, seeds: Sequence[int]) -> list[Demonstration]:
        """One demonstration a seed, each of which reaches its goal."""
        ...

    def close(self) -> None:
        """Frees what the worlds hold."""
        ...


MakeGoalWorlds = Callable[[int], GoalWorlds]


class GoalWorldEnv(gymnasium.Env):
    """One row of goal worlds as a Gymnasium world: a dict of contract channels, `info["success"]`, truncated at the horizon.

    Args:
        goal_worlds: makes worlds of n rows; kept as `goal_worlds`, where training finds it.
    """

    def __init__(self, goal_worlds: MakeGoalWorlds) -> None:
        self.goal_worlds = goal_worlds
        self.worlds = goal_worlds(1)
        self.contract = self.worlds.contract
        channels: dict[str, spaces.Space[Any]] = {
            channel.name: spaces.Box(-np.inf, np.inf, (channel.size,), np.float32) for channel in self.contract.observation
        }
        self.observation_space = spaces.Dict(channels)
        self.action_space = spaces.Box(-1.0, 1.0, (self.contract.action.size,), np.float32)
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Array], dict[str, Any]]:
        """See `gymnasium.Env.reset`."""
        super().reset(seed=seed)
        self._steps = 0
        row = int(self.np_random.integers(2**31)) if seed is None else seed
        return self._channels(self.worlds.reset([row])), {}

    def step(self, action: Array) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """See `gymnasium.Env.step`; the reward is the sparse one."""
        seen = self.worlds.step(np.asarray(action, np.float32)[None])
        self._steps += 1
        reward = float(self.worlds.goal.reward(seen["achieved_goal"], seen[DESIRED_GOAL])[0])
        return self._channels(seen), reward, False, self._steps >= self.worlds.horizon, {"success": reward == 0.0}

    def close(self) -> None:
        """See `gymnasium.Env.close`."""
        self.worlds.close()

    def _channels(self, seen: GoalObservation) -> dict[str, Array]:
        flat = np.concatenate([seen["observation"][0], seen[DESIRED_GOAL][0]])
        ends = np.cumsum([channel.size for channel in self.contract.observation])[:-1]
        parts = np.split(flat, ends)
        return {channel.name: part.astype(np.float32) for channel, part in zip(self.contract.observation, parts, strict=True)}


def make_goal_worlds(env_id: str, n: int, **kwargs: Any) -> GoalWorlds:
    """n rows of the Gymnasium world `env_id`, which is a `GoalWorldEnv` under any wrappers.

    Raises:
        WorldError: no such world, or one without goals.
        GoalWorldError: see `check_goal_worlds`.
    """
    env = make_world(env_id, **kwargs)
    try:
        if not env.has_wrapper_attr("goal_worlds"):
            raise WorldError(f"world {env_id!r} has no goals (no attribute goal_worlds); valid: a goal world, e.g. armstack/Maze-v0")
        worlds: GoalWorlds = env.get_wrapper_attr("goal_worlds")(n)
    finally:
        env.close()
    check_goal_worlds(worlds)
    return worlds


def check_goal_worlds(worlds: GoalWorlds) -> None:
    """Checks the contract against the goal space.

    Raises:
        GoalWorldError: the last channel is not `desired_goal` of size G, or a channel is an image, a text or has a history.
    """
    channels = worlds.contract.observation
    last = channels[-1] if channels else None
    if last is None or last.name != DESIRED_GOAL or last.size != worlds.goal.size:
        found = f"{last.name!r} of size {last.size}" if last else "none"
        raise GoalWorldError(f"last observation channel: {found}, valid: {DESIRED_GOAL!r} of size {worlds.goal.size}")
    odd = [c.name for c in channels if c.history != 1 or c not in worlds.contract.low_dimensional]
    if odd or len(channels) < 2:
        raise GoalWorldError(
            f"observation channels {[c.name for c in channels]}: {odd}; valid: vectors of history 1 before {DESIRED_GOAL!r}"
        )


def _like(array: Array, values: Values) -> Values:
    return torch.as_tensor(np.array(array), device=values.device) if isinstance(values, Tensor) else array
