"""WorldEnv: what every Gymnasium environment around one ArmWorld shares: spaces, seeded resets, validity, pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rl_core.contract import RobotContract
from sim_envs.arm.observation import PERIOD_S, observation
from sim_envs.arm.world import ArmWorld

if TYPE_CHECKING:
    from sim_envs.arm.rendering import Renderer


class WorldEnv(gymnasium.Env[dict[str, np.ndarray], np.ndarray]):
    """One arm, one task, 20 policy steps a simulated second. A child defines `step` and says how an action becomes motion.

    `info["success"]` says whether the task is done at this step. As in robosuite, success does not end an episode; only the horizon
    does, as a truncation.

    Args:
        world: the world; `visual` where pictures are wanted.
        contract: what the environment offers.
        horizon: policy steps of an episode; None takes the task's.
        reward_shaping: shaped rewards in [0, 1]; otherwise 1 at success, 0 else.
        render_mode: None or `rgb_array`.
        camera: `front` or `wrist`.
        width: picture width, pixels.
        height: picture height, pixels.

    Raises:
        ValueError: unknown render mode.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": round(1 / PERIOD_S)}

    def __init__(
        self,
        world: ArmWorld,
        contract: RobotContract,
        *,
        horizon: int | None,
        reward_shaping: bool,
        render_mode: str | None,
        camera: str,
        width: int,
        height: int,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"no render_mode {render_mode!r}; modes: None, 'rgb_array'")
        self.world = world
        self.contract = contract
        self.horizon = world.task.horizon if horizon is None else horizon
        self.reward_shaping = reward_shaping
        self.render_mode = render_mode
        self._picture = {"camera": camera, "width": width, "height": height}
        self._renderer: Renderer | None = None
        self._steps = 0
        self._invalid = "reset() has not been called yet"
        self.action_space = spaces.Box(-1.0, 1.0, (contract.action.size,), np.float32)
        self.observation_space: spaces.Space[Any] = spaces.Dict(
            {c.name: spaces.Box(-np.inf, np.inf, c.shape, np.float32) for c in contract.observation}
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Starts an episode; with a seed, exactly `ArmWorld.reset(seed)`'s."""
        super().reset(seed=seed)
        self.world.reset(int(self.np_random.integers(2**31)) if seed is None else seed)
        self._steps = 0
        self._invalid = ""
        return self._observe(), {"success": self.world.success()}

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """The camera's picture now: (height, width, 3) uint8 RGB, first row on top; None without a render mode."""
        if self.render_mode is None:
            return None
        if self._renderer is None:
            from sim_envs.arm.rendering import Renderer  # the only import that brings graphics libraries

            self._renderer = Renderer(self.world, **self._picture)  # type: ignore[arg-type]
        return self._renderer.render(self.world.qpos())

    def close(self) -> None:
        """Frees the renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def _require_valid(self) -> None:
        """Raises gymnasium.error.ResetNeeded where the episode is invalid, or there is none."""
        if self._invalid:
            raise gymnasium.error.ResetNeeded(f"call reset(): {self._invalid}")

    def _invalidate(self, fault: Exception) -> None:
        self._invalid = f"the episode is invalid since step {self._steps}: {fault}"

    def _observe(self) -> dict[str, np.ndarray]:
        channels = observation(self.world.state(), self.world.task.name)
        return {name: value.astype(np.float32) for name, value in channels.items()}

    def _finish_step(self, info: dict[str, Any]) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Counts the step; gives Gymnasium's five values with `info` and the success."""
        self._steps += 1
        info = {"success": self.world.success(), **info}
        return self._observe(), self.world.reward(self.reward_shaping), False, self._steps >= self.horizon, info
