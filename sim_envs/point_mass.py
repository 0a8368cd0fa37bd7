"""A point mass that must pass an obstacle on the left or on the right: the smallest control task with two right answers.

          goal (0, 0.8)
     .                  .
left .     obstacle     . right (slightly shorter)
     .   (-0.1, 0) r 0.3.
          start (0, -0.45), the fork
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rl_core.contract import Action, Channel, RobotContract

START = np.array([0.0, -0.45])
GOAL = np.array([0.0, 0.8])
OBSTACLE = np.array([-0.1, 0.0])
OBSTACLE_RADIUS = 0.3
GOAL_RADIUS = 0.1
STEP = 0.1
"""Metres moved by an action of length 1."""
PERIOD_S = 0.05
COLLISION_REWARD = -20.0

CONTRACT = RobotContract(
    robot="point_mass",
    observation=(Channel(name="position", names=("x", "y"), unit="m", frame="base", rate_hz=1 / PERIOD_S),),
    action=Action(
        names=("x", "y"),
        meaning="delta",
        space="end_effector",
        scale=(STEP, STEP),
        units=("m", "m"),
        period_s=PERIOD_S,
    ),
)


class PointMassFork(gymnasium.Env):
    """Observation {"position": (2,)} metres, action (2,) in [-1, 1] times 0.1 m; registered as `armstack/PointMassFork-v0`.

    Every step costs 1; touching the obstacle costs 20 and ends the episode (`info["collision"]`), as reaching the goal does
    (`info["success"]`).
    """

    metadata = {"render_modes": []}

    def __init__(self, render_mode: None = None) -> None:
        self.render_mode = render_mode
        self.contract = CONTRACT
        self.observation_space = spaces.Dict({"position": spaces.Box(-2.0, 2.0, (2,), np.float32)})
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self._position = START.copy()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts within 2 cm of the fork; the seed decides."""
        super().reset(seed=seed)
        self._position = START + self.np_random.uniform(-0.02, 0.02, 2)
        return self._observation(), {"success": False, "collision": False}

    def step(self, action: NDArray[Any]) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Moves by the action; the way is checked for the obstacle, not only its end.

        Raises:
            ValueError: an action that is not two finite numbers.
        """
        delta = np.asarray(action, np.float64)
        if delta.shape != (2,) or not np.isfinite(delta).all():
            raise ValueError(f"action {action}, valid: two finite numbers")
        way = np.clip(delta, -1.0, 1.0) * STEP
        reach = np.clip(np.dot(OBSTACLE - self._position, way) / max(float(way @ way), 1e-12), 0.0, 1.0)
        nearest = self._position + reach * way
        self._position = np.clip(self._position + way, -2.0, 2.0)
        collision = bool(np.linalg.norm(nearest - OBSTACLE) < OBSTACLE_RADIUS)
        success = not collision and bool(np.linalg.norm(self._position - GOAL) < GOAL_RADIUS)
        reward = COLLISION_REWARD if collision else -1.0
        return self._observation(), reward, collision or success, False, {"success": success, "collision": collision}

    def _observation(self) -> dict[str, Any]:
        return {"position": self._position.astype(np.float32)}
