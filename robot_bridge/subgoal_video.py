"""A video of a two-level policy with the subgoals it asks for drawn in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from tensordict import TensorDict

from rl_core.pear.policy import HierarchicalPolicy
from rl_core.policy import ActionChunk, PolicyState
from rl_core.training.video import Picture, record_episode
from rl_core.training.worlds import MakeEnv
from sim_envs.arm.goal_worlds import ArmGoalWorlds
from sim_envs.arm.scene import build

Draw = Callable[[Sequence[NDArray[np.float32]]], Picture]
"""Subgoals so far (G,), the newest last, in the goal's units -> the picture of now."""
_HAND, _THING = (222, 140, 30), (40, 90, 170)


class _Watched:
    """A policy of one row that keeps the subgoals it has asked for, in `asked`."""

    def __init__(self, policy: HierarchicalPolicy) -> None:
        self.contract, self._policy = policy.contract, policy
        self.prepare, self.reset, self.reset_rows = policy.prepare, policy.reset, policy.reset_rows
        self.asked: list[NDArray[np.float32]] = []

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        """See `Policy.act`."""
        chunk, state = self._policy.act(obs, condition, state)
        if int(chunk.info["age"][0]) == 0:
            self.asked.append(chunk.info["subgoal"][0].cpu().numpy())
        return chunk, state


def record_subgoals(policy: HierarchicalPolicy, make_env: MakeEnv, seed: int, file: str | Path) -> Path:
    """Runs the episode of `seed` in a goal world made with `render_mode="rgb_array"` and writes it as MP4 in true time.

    Raises:
        ArmstackError: the world does not render.
    """
    watched = _Watched(policy)

    def with_subgoals(env: gymnasium.Env[Any, Any]) -> Callable[[], Picture]:
        draw = _drawer(env, policy)
        return lambda: draw(watched.asked)

    return record_episode(watched, make_env, seed, file, draw=with_subgoals)


def _drawer(env: Any, policy: HierarchicalPolicy) -> Draw:
    """How a world shows subgoals: by itself, or as points in its camera's picture."""
    worlds = env.get_wrapper_attr("worlds") if env.has_wrapper_attr("worlds") else None
    asks = policy.low is not None and policy.high is not None  # a flat policy acts towards the goal, which is in the picture anyway
    if asks and isinstance(worlds, ArmGoalWorlds):
        return ArmDrawer(worlds)
    if asks and worlds is not None and "subgoals" in inspect.signature(worlds.render).parameters:
        return lambda subgoals: worlds.render(0, subgoals=subgoals)
    return lambda subgoals: np.asarray(env.render())


class ArmDrawer:
    """Draws where hand (orange ring) and thing (blue ring) are to be, of the goal's threshold in size, into the front camera's picture."""

    def __init__(self, worlds: ArmGoalWorlds) -> None:
        self._worlds = worlds
        model = build(worlds.task, "joint_position", visual=True)
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_camlight(model, data)
        camera = model.camera("front").id
        self._place, self._axes = data.cam_xpos[camera].copy(), data.cam_xmat[camera].reshape(3, 3).copy()
        self._focal = 0.5 / np.tan(np.deg2rad(model.cam_fovy[camera]) / 2)

    def pixels(self, point: NDArray[np.floating], height: int, width: int) -> tuple[float, float, float]:
        """Column and row of a point (3,), metres in frame base, and how many pixels a metre is there."""
        right, up, backwards = self._axes.T @ (np.asarray(point, np.float64) - self._place)
        scale = self._focal * height / -backwards
        return width / 2 + scale * right, height / 2 - scale * up, scale

    def __call__(self, subgoals: Sequence[NDArray[np.float32]]) -> Picture:
        """See `Draw`; the newest subgoal alone."""
        picture = Image.fromarray(self._worlds.render(0))
        canvas = ImageDraw.Draw(picture)
        for part, colour in ((slice(0, 3), _HAND), (slice(3, 6), _THING)):
            x, y, scale = self.pixels(subgoals[-1][part], picture.height, picture.width)
            radius = self._worlds.goal.threshold * scale
            canvas.ellipse((x - radius, y - radius, x + radius, y + radius), outline=colour, width=2)
            canvas.ellipse((x - 2, y - 2, x + 2, y + 2), fill=colour)
        return np.asarray(picture)
