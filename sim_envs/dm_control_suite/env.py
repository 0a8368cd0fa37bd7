"""SuiteEnv: a domain of dm_control's suite for Gymnasium, without a task."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rl_core.errors import ArmstackError
from sim_envs.dm_control_suite.rewards import COLUMNS, REWARDS

Observation = NDArray[np.float32]

HORIZON = 1000
"""Steps of an episode: dm_control's time limit of every domain here."""
TASKS = {"walker": "stand", "quadruped": "walk", "hopper": "stand", "reacher": "easy"}
"""Domain -> the task whose model and starts are used; a domain's tasks differ in nothing else but the reward."""


def _walker(physics: Any) -> list[float]:
    return [physics.horizontal_velocity(), physics.named.data.subtree_angmom["torso"][1]]


def _quadruped(physics: Any) -> list[float]:
    return [physics.named.data.sensordata["center_of_mass"][2]]


def _hopper(physics: Any) -> list[float]:
    return [physics.height(), physics.speed(), physics.named.data.subtree_angmom["torso"][1]]


def _nothing(physics: Any) -> list[float]:
    return []


EXTRA: dict[str, Callable[[Any], list[float]]] = {"walker": _walker, "quadruped": _quadruped, "hopper": _hopper, "reacher": _nothing}
"""Domain -> what its rewards need and dm_control's observation does not have, in the order of `COLUMNS`."""


class SuiteEnv(gymnasium.Env[Observation, NDArray[Any]]):
    """Flat float32 observations, actions in [-1, 1] mapped on the domain's own range, reward 0, no end but the horizon's truncation.

    Args:
        domain: `walker`, `quadruped`, `hopper` or `reacher`.
        horizon: steps of an episode.
        render_mode: None or `rgb_array`.
        width: picture width, pixels.
        height: picture height, pixels.

    Attributes:
        suite: the environment of dm_control; its `physics` is the world's whole state.
        rewards: named rewards of this domain.
        columns: what is where in an observation.

    Raises:
        ArmstackError: unknown domain or render mode, or dm_control is not installed.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 40}

    def __init__(self, domain: str, *, horizon: int = HORIZON, render_mode: str | None = None, width: int = 240, height: int = 240) -> None:
        if domain not in TASKS:
            raise ArmstackError(f"domain {domain!r}, valid: {', '.join(sorted(TASKS))}")
        if render_mode not in (None, "rgb_array"):
            raise ArmstackError(f"render_mode {render_mode!r}, valid: None, 'rgb_array'")
        self._random = np.random.RandomState(0)
        self.suite = _load(domain, self._random)
        self.domain, self.horizon, self.render_mode = domain, horizon, render_mode
        self.rewards, self.columns = REWARDS[domain], COLUMNS[domain]
        self.dt = self.suite.control_timestep()
        self.metadata = {**type(self).metadata, "render_fps": round(1 / self.dt)}
        spec = self.suite.action_spec()
        self._middle, self._half = (spec.maximum + spec.minimum) / 2, (spec.maximum - spec.minimum) / 2
        size = max(part.stop for part in self.columns.values())
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, spec.shape, np.float32)
        self._picture = width, height
        self._viewer: Any = None
        self._steps: int | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode as dm_control does; the seed decides."""
        super().reset(seed=seed)
        self._random.seed(int(self.np_random.integers(2**32)))
        self._steps = 0
        return self.observe(self.suite.reset().observation).astype(np.float32), {}

    def step(self, action: NDArray[Any]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """One control step. Actions beyond [-1, 1] are clipped.

        Raises:
            ValueError: an action that is not finite numbers of the right shape. Nothing has moved.
            dm_control.rl.control.PhysicsError: the physics diverged.
            gymnasium.error.ResetNeeded: the episode is over, or there is none.
        """
        if self._steps is None:
            raise gymnasium.error.ResetNeeded("call reset(): the episode is over, or none has begun")
        action = np.asarray(action, np.float64)
        if action.shape != self.action_space.shape or not np.isfinite(action).all():
            raise ValueError(f"action {action}, valid: {self.action_space.shape} finite numbers")
        steps, self._steps = self._steps + 1, None  # no episode while the physics may diverge
        time_step = self.suite.step(self._middle + self._half * np.clip(action, -1.0, 1.0))
        observation = self.observe(time_step.observation).astype(np.float32)
        truncated = steps >= self.horizon
        self._steps = None if truncated else steps
        return observation, 0.0, False, truncated, {}

    def observe(self, parts: dict[str, Any]) -> NDArray[np.float64]:
        """dm_control's observation and `EXTRA`'s numbers, flat, (D,) float64, as `columns` says."""
        own = [np.ravel(part) for part in parts.values()]
        return np.concatenate([*own, EXTRA[self.domain](self.suite.physics)])

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]
        """The domain's first camera now: (height, width, 3) uint8 RGB; None without a render mode."""
        if self.render_mode is None:
            return None
        if self._viewer is None:
            self._viewer = _viewer(self.suite.physics, *self._picture)
            self._free = weakref.finalize(self, self._viewer.close)  # at exit drivers go before objects do
        self._viewer.make_context_current()
        return self._viewer.render("rgb_array", camera_id=0)

    def close(self) -> None:
        """Frees the graphics memory and the physics."""
        if self._viewer is not None:
            self._free()
            self._viewer = None
        self.suite.close()


def _viewer(physics: Any, width: int, height: int) -> Any:
    import mujoco
    from gymnasium.envs.mujoco.mujoco_rendering import OffScreenViewer

    from sim_envs.arm.rendering import BACKENDS, working_backend

    wanted = os.environ.get("MUJOCO_GL")
    with _graphics(working_backend(wanted if wanted in BACKENDS else None)):
        viewer = OffScreenViewer(physics.model.ptr, physics.data.ptr, width, height)
    for costly in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):  # four fifths of the time without a GPU
        viewer.scn.flags[costly] = False
    return viewer


def _load(domain: str, random: np.random.RandomState) -> Any:
    import sim_envs.arm  # noqa: F401  # imports MuJoCo without graphics

    with _graphics("disable"):  # dm_control binds a graphics library on import otherwise, or fails where there is none
        try:
            from dm_control import suite
        except ImportError as error:
            raise ArmstackError(f'{domain} is a world of dm_control: pip install "armstack[dm-control]" ({error})') from error
    return suite.load(domain, TASKS[domain], task_kwargs={"random": random, "time_limit": float("inf")})


@contextmanager
def _graphics(library: str) -> Iterator[None]:
    """MuJoCo's graphics library while it lasts; the user's variable is left as it was."""
    wanted = os.environ.get("MUJOCO_GL")
    os.environ["MUJOCO_GL"] = library
    try:
        yield
    finally:
        if wanted is None:
            del os.environ["MUJOCO_GL"]
        else:
            os.environ["MUJOCO_GL"] = wanted
