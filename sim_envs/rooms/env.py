"""RoomsVectorEnv: many point masses in one maze, stepped together in NumPy; RoomsEnv: one of them, with pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from rl_core.contract import Action, Channel, RobotContract
from rl_core.errors import ArmstackError
from sim_envs.reward_free.rewards import Reward
from sim_envs.rooms.layout import HIGH, LAYOUTS, LOW, START, START_SPREAD, Layout, move
from sim_envs.rooms.picture import draw_room
from sim_envs.rooms.rewards import COLUMNS, REWARDS

STEP = 0.03
"""Metres moved along an axis by an action of 1, unless told otherwise."""
PERIOD_S = 0.05
HORIZON = 200
"""Steps of an episode."""

Observation = NDArray[np.float32]


def rooms_contract(step: float = STEP) -> RobotContract:
    """Of a point mass that an action of 1 moves by `step` metres along an axis."""
    return RobotContract(
        robot="point_mass",
        observation=(Channel(name="position", names=("x", "y"), unit="m", frame="base", rate_hz=1 / PERIOD_S),),
        action=Action(
            names=("x", "y"), meaning="delta", space="end_effector", scale=(step, step), units=("m", "m"), period_s=PERIOD_S
        ),
    )  # fmt: skip


def find_layout(name: str) -> Layout:
    """The maze `name`.

    Raises:
        ArmstackError: there is none; names the mazes there are.
    """
    if name not in LAYOUTS:
        raise ArmstackError(f"maze {name!r}, valid: {', '.join(sorted(LAYOUTS))}")
    return LAYOUTS[name]


class RoomsVectorEnv(VectorEnv[Observation, NDArray[Any], NDArray[Any]]):
    """`num_envs` point masses: observations (num_envs, 2) metres, actions (num_envs, 2) in [-1, 1] times `step`, clipped.

    An episode starts in the lower left corner and is truncated after `horizon` steps; the next step resets it, as
    `AutoresetMode.NEXT_STEP` says: its action is ignored and its reward 0.

    Args:
        layout: `four_rooms` or `u_maze`.
        num_envs: how many.
        horizon: steps of an episode.
        step: metres moved along an axis by an action of 1.
        reward: labels each step; None gives 0.

    Raises:
        ArmstackError: unknown maze, or a step that is not above 0.

    Attributes:
        layout: the maze.
        rewards: its named rewards.
        columns: what is where in an observation.
    """

    def __init__(self, layout: str, num_envs: int, *, horizon: int = HORIZON, step: float = STEP, reward: Reward | None = None) -> None:
        self.layout = find_layout(layout)
        if not 0 < step < np.inf:
            raise ArmstackError(f"step {step} of maze {layout!r}, valid: metres above 0")
        self.rewards, self.columns = REWARDS[layout], COLUMNS
        self.num_envs, self.horizon, self._step_m, self._reward = num_envs, horizon, step, reward
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space = spaces.Box(LOW, HIGH, (2,), np.float32)
        self.single_action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._generators = [np.random.default_rng() for _ in range(num_envs)]
        self._positions = np.tile(np.array(START), (num_envs, 1))
        self._steps = np.zeros(num_envs, np.int64)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts all; an integer seed gives point i the seed `seed + i`."""
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else list(seed or [None] * self.num_envs)
        for i, own in enumerate(seeds):
            if own is not None:
                self._generators[i] = np.random.default_rng(own)
        self._start(np.arange(self.num_envs))
        return self._positions.astype(np.float32), {}

    def step(self, actions: NDArray[Any]) -> tuple[Observation, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Moves all.

        Raises:
            ValueError: actions that are not (num_envs, 2) finite numbers. Nothing has moved.
        """
        actions = np.asarray(actions, np.float64)
        if actions.shape != (self.num_envs, 2) or not np.isfinite(actions).all():
            raise ValueError(f"actions of shape {actions.shape}, valid: ({self.num_envs}, 2) finite numbers")
        actions = np.clip(actions, -1.0, 1.0)
        before, ended = self._positions, self._steps >= self.horizon
        self._positions = move(self.layout, before, self._step_m * actions)
        self._steps += 1
        self._start(np.flatnonzero(ended))
        rewards = np.zeros(self.num_envs)
        if self._reward is not None:
            # Of the numbers that are handed out, so that a label given later to what was stored is the same.
            transition = (part.astype(np.float32) for part in (before, actions, self._positions))
            rewards = np.where(ended, 0.0, self._reward(*transition))
        never = np.zeros(self.num_envs, np.bool_)
        return self._positions.astype(np.float32), rewards, never, self._steps >= self.horizon, {}

    def _start(self, which: NDArray[np.int64]) -> None:
        for i in which:
            self._positions[i] = np.array(START) + self._generators[i].uniform(-START_SPREAD, START_SPREAD, 2)
        self._steps[which] = 0


class RoomsEnv(gymnasium.Env[Any, NDArray[Any]]):
    """One point mass: observation {"position": (2,)}; else as `RoomsVectorEnv`. `info["success"]`: whether the reward is 1.

    Args:
        layout: `four_rooms` or `u_maze`.
        horizon: steps of an episode.
        step: metres moved along an axis by an action of 1.
        reward: labels each step; None gives 0.
        render_mode: None or `rgb_array`.

    Raises:
        ArmstackError: unknown maze or render mode, or a step that is not above 0.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": round(1 / PERIOD_S)}

    def __init__(
        self, layout: str, *, horizon: int = HORIZON, step: float = STEP, reward: Reward | None = None, render_mode: str | None = None
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ArmstackError(f"render_mode {render_mode!r}, valid: None, 'rgb_array'")
        self._points = RoomsVectorEnv(layout, 1, horizon=horizon, step=step, reward=reward)
        self.layout, self.rewards, self.columns = self._points.layout, self._points.rewards, COLUMNS
        self.contract, self.render_mode = rooms_contract(step), render_mode
        self.observation_space: spaces.Space[Any] = spaces.Dict({"position": self._points.single_observation_space})
        self.action_space = self._points.single_action_space
        self._now = np.array([START], np.float32)
        self._ended = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Observation], dict[str, Any]]:
        """Starts an episode; the seed decides where in the corner."""
        super().reset(seed=seed)
        self._now, _ = self._points.reset(seed=[seed])
        self._ended = False
        return {"position": self._now[0]}, {"success": False}

    def step(self, action: NDArray[Any]) -> tuple[dict[str, Observation], float, bool, bool, dict[str, Any]]:
        """Moves by the action.

        Raises:
            ValueError: an action that is not two finite numbers.
            gymnasium.error.ResetNeeded: the episode is over, or there is none.
        """
        if self._ended:
            raise gymnasium.error.ResetNeeded("call reset(): the episode is over, or none has begun")
        self._now, rewards, _, truncated, _ = self._points.step(np.asarray(action)[None])
        self._ended = bool(truncated[0])
        return {"position": self._now[0]}, float(rewards[0]), False, self._ended, {"success": bool(rewards[0] >= 1.0)}

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]
        """The maze from above, the point in it: (H, W, 3) uint8 RGB; None without a render mode."""
        return draw_room(self.layout, self._now[0]) if self.render_mode == "rgb_array" else None
