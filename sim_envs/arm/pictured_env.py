"""PicturedEnv: an arm's environment whose observations have camera pictures too."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from rl_core.contract import Channel, RobotContract
from sim_envs.arm.observation import PERIOD_S
from sim_envs.arm.scene import CAMERAS
from sim_envs.arm.world_env import WorldEnv

if TYPE_CHECKING:
    from sim_envs.arm.rendering import Renderer


class PicturedEnv(gymnasium.Wrapper[dict[str, np.ndarray], np.ndarray, dict[str, np.ndarray], np.ndarray]):
    """Adds the channel `CAMERA_image` of every camera, as a simulated camera node offers it: RGB, first row on top.

    Draws in the thread of its first reset; graphics contexts are bound to one.

    Args:
        env: the environment around one world.
        shapes: camera -> (height, width) of its pictures, pixels; cameras are `front` and `wrist`.

    Attributes:
        contract: the environment's, with the pictures last.

    Raises:
        ValueError: unknown camera, or no pixels.
        RenderingUnavailable: no graphics library draws here; at the first reset.
    """

    def __init__(self, env: WorldEnv, shapes: Mapping[str, tuple[int, int]]) -> None:
        wrong = {camera: shape for camera, shape in shapes.items() if camera not in CAMERAS or min(shape) < 1}
        if wrong:
            raise ValueError(f"pictures {wrong}; valid: 1 pixel or more, cameras {', '.join(CAMERAS)}")
        super().__init__(env)
        self._world, self._shapes = env.world, dict(shapes)
        self._renderers: dict[str, Renderer] = {}
        channels = tuple(_channel(camera, shape) for camera, shape in shapes.items())
        self.contract = dataclasses.replace(env.contract, observation=(*env.contract.observation, *channels))
        assert isinstance(env.observation_space, gymnasium.spaces.Dict)
        pictures = {channel.name: gymnasium.spaces.Box(0, 255, channel.shape, np.uint8) for channel in channels}
        self.observation_space = gymnasium.spaces.Dict({**env.observation_space.spaces, **pictures})  # type: ignore[assignment]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """See `WorldEnv.reset`."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._with_pictures(observation), info

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """See the environment's `step`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._with_pictures(observation), float(reward), terminated, truncated, info

    def close(self) -> None:
        """Frees the renderers."""
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()
        self.env.close()

    def _with_pictures(self, observation: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if not self._renderers:
            from sim_envs.arm.rendering import Renderer  # brings graphics libraries

            self._renderers = {camera: Renderer(self._world, width, height, camera) for camera, (height, width) in self._shapes.items()}
        qpos = self._world.qpos()
        return {**observation, **{f"{camera}_image": renderer.render(qpos) for camera, renderer in self._renderers.items()}}


def _channel(camera: str, shape: tuple[int, int]) -> Channel:
    return Channel(
        name=f"{camera}_image", kind="image", shape=(*shape, 3), frame=f"camera_{camera}", rate_hz=1 / PERIOD_S,
        encoding="rgb8", row_order="top_down",
    )  # fmt: skip


def pictured_for(env: WorldEnv, need: RobotContract) -> gymnasium.Env[dict[str, np.ndarray], np.ndarray]:
    """The environment with those of the pictures that a policy needs which its cameras draw; as it is where there are none."""
    images = {channel.name.removesuffix("_image"): channel for channel in need.observation if channel.kind == "image"}
    shapes = {camera: (images[camera].shape[0], images[camera].shape[1]) for camera in CAMERAS if camera in images}
    return PicturedEnv(env, shapes) if shapes else env
