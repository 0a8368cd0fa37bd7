"""ExploreArm: the arm without a task. The hand moves in a box over the table; `push` has a cube to be pushed about.

The box bounds the hand's orientation too, so that chance does not tumble it: no task here needs another one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from rl_core.contract import RobotContract
from rl_core.errors import ArmstackError
from sim_envs.arm.observation import PERIOD_S, POSITION_STEP, ROTATION_STEP, world_contract
from sim_envs.arm.scene import TABLE_CENTRE, TABLE_TOP
from sim_envs.arm.world import ArmWorld, FaultyAction, SimulationFault
from sim_envs.arm.world_env import WorldEnv
from sim_envs.reward_free.rewards import Array, Columns, Reward, columns
from sim_envs.reward_free.tolerance import linear

TABLE = np.array((*TABLE_CENTRE, TABLE_TOP))
"""Middle of the table's top, metres in the base frame; what follows is relative to it."""
REACHED = 0.02
"""Within it a point is reached, metres (as in the task Reach)."""
PUSHED = 0.10
"""So far from the table's middle the cube has to be, metres; it starts within 3 cm of it."""
POINTS = {
    "left": (0.0, 0.15, 0.2),
    "right": (0.0, -0.15, 0.2),
    "near": (-0.12, 0.0, 0.2),
    "far": (0.08, 0.0, 0.2),
    "low": (0.0, 0.0, 0.07),
    "high": (0.0, 0.0, 0.32),
}
"""Points to reach, metres from `TABLE`: left is the robot's, +y; near is near to it."""
DIRECTIONS = {"left": (0.0, 1.0), "right": (0.0, -1.0), "near": (-1.0, 0.0), "far": (1.0, 0.0)}


TURNED = 0.35
"""The hand turns no further than this about each axis from how an episode starts, rad."""
Moves = Literal["ee_delta", "translation"]


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """One world to explore.

    Attributes:
        scene: the task whose things are on the table and whose starts are used.
        channels: what is observed, in this order.
        low: lower corner of the hand's box, metres from `TABLE`.
        high: upper corner. Where an episode starts above it, the hand comes down by itself.
        horizon: policy steps of an episode.
    """

    scene: str
    channels: tuple[str, ...]
    low: tuple[float, float, float]
    high: tuple[float, float, float]
    horizon: int

    def contract(self, action: Moves = "ee_delta") -> RobotContract:
        """The channels, and the actions of the kind asked for."""
        world = world_contract(self.scene, "ee_delta", "osc_pose")
        whole = world.action
        if action == "translation":
            moves = dataclasses.replace(whole, names=whole.names[:3], scale=whole.scale[:3], units=whole.units[:3], gripper=None)
        else:
            moves = whole
        return dataclasses.replace(world, observation=tuple(world.channel(name) for name in self.channels), action=moves)

    @property
    def columns(self) -> Columns:
        """Where each channel lies in the flat observation."""
        return columns({channel.name: channel.size for channel in self.contract().observation})


_ARM = ("eef_pos", "eef_quat", "joint_pos", "joint_vel")
WORLDS = {
    "reach": Exploration(scene="reach", channels=_ARM, low=(-0.2, -0.25, 0.03), high=(0.15, 0.25, 0.4), horizon=100),
    "push": Exploration(
        scene="lift",
        channels=(*_ARM, "gripper_pos", "cube_pos", "cube_quat", "gripper_to_cube_pos"),
        low=(-0.2, -0.22, 0.02),
        high=(0.2, 0.22, 0.12),
        horizon=200,
    ),
}


def reach_point(point: Array, *, shaped: bool, at: slice = WORLDS["reach"].columns["eef_pos"]) -> Reward:
    """1 within 2 cm of a point (3,), metres in the base frame; elsewhere 0, or, if shaped, robosuite's 1 - tanh(10 distance)."""

    def reward(observation: Array, action: Array, next_observation: Array) -> Array:
        distance = np.linalg.norm(next_observation[..., at] - np.asarray(point), axis=-1)
        return np.where(distance < REACHED, 1.0, 1.0 - np.tanh(10.0 * distance) if shaped else 0.0)

    return reward


def push_towards(direction: tuple[float, float]) -> Reward:
    """1 where the cube is 10 cm from the table's middle in this direction, falling to 0 at the middle; 0 once it has left the table."""

    def reward(observation: Array, action: Array, next_observation: Array) -> Array:
        cube = next_observation[..., WORLDS["push"].columns["cube_pos"]] - TABLE
        gone = linear(cube[..., :2] @ np.array(direction), PUSHED, margin=PUSHED, value_at_margin=0.0)
        return np.where(cube[..., 2] > 0.0, gone, 0.0)

    return reward


def touch_cube(observation: Array, action: Array, next_observation: Array) -> Array:
    """1 where the point between the finger pads is within 4 cm of the cube's middle, falling to 0 over 20 cm."""
    distance = np.linalg.norm(next_observation[..., WORLDS["push"].columns["gripper_to_cube_pos"]], axis=-1)
    return linear(-distance, -0.04, margin=0.2, value_at_margin=0.0)


REWARDS: Mapping[str, Mapping[str, Reward]] = {
    "reach": {name: reach_point(TABLE + point, shaped=False) for name, point in POINTS.items()}
    | {f"{name}_shaped": reach_point(TABLE + point, shaped=True) for name, point in POINTS.items()},
    "push": {f"push_{name}": push_towards(direction) for name, direction in DIRECTIONS.items()} | {"touch_cube": touch_cube},
}
"""World -> name -> reward."""


class ExploreArm(WorldEnv):
    """One arm without a task: reward 0, no end but the horizon's truncation. See `WorldEnv` for pictures.

    Observations are the contract's channels, the end effector's pose first. An action is clipped to [-1, 1] and to the hand's box;
    `info["action_applied"]` is what was left of it. `ee_delta` actions are those of every other arm world and of the arms; `translation`
    has their x, y, z only, so there is less to explore, but no arm offers that.

    Args:
        world: `reach` or `push`.
        action: `ee_delta` (7,) or `translation` (3,): orientation and gripper stay as they are.
        horizon: policy steps of an episode; None takes the world's.
        render_mode: None or `rgb_array`.
        camera: `front` or `wrist`.
        width: picture width, pixels.
        height: picture height, pixels.

    Attributes:
        rewards: named rewards of this world.
        columns: what is where in the flat observation.

    Raises:
        ArmstackError: unknown world or action kind.
    """

    def __init__(
        self,
        world: str,
        *,
        action: Moves = "ee_delta",
        horizon: int | None = None,
        render_mode: str | None = None,
        camera: str = "front",
        width: int = 256,
        height: int = 256,
    ) -> None:
        if world not in WORLDS:
            raise ArmstackError(f"exploration {world!r}, valid: {', '.join(sorted(WORLDS))}")
        if action not in get_args(Moves):
            raise ArmstackError(f"action {action!r}, valid: {', '.join(get_args(Moves))}")
        exploration = WORLDS[world]
        super().__init__(
            ArmWorld(exploration.scene, controller="osc_pose"),
            exploration.contract(action),
            horizon=horizon or exploration.horizon,
            reward_shaping=False,
            render_mode=render_mode,
            camera=camera,
            width=width,
            height=height,
        )
        self.rewards, self.columns = REWARDS[world], exploration.columns
        self._low, self._high = TABLE + exploration.low, TABLE + exploration.high
        self._substeps = round(PERIOD_S / self.world.model.opt.timestep)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Starts an episode; the seed decides."""
        observation, _ = super().reset(seed=seed, options=options)
        self._upright = Rotation.from_quat(observation["eef_quat"])
        return observation, {}

    def step(self, action: NDArray[Any]) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """One policy period.

        Raises:
            FaultyAction: the action is not finite numbers of the right shape. The episode is invalid from here on.
            SimulationFault: the physics diverged; likewise.
            gymnasium.error.ResetNeeded: the episode is invalid, or there is none.
        """
        self._require_valid()
        action = np.asarray(action, np.float64)
        try:
            if action.shape != self.action_space.shape or not np.isfinite(action).all():
                raise FaultyAction(f"exploring action: {self.action_space.shape} finite numbers needed, found {action}")
            applied = self._inside(np.clip(action, -1.0, 1.0))
            self.world.set_pose_delta(np.concatenate([applied, np.zeros(7 - len(applied))]))  # gripper 0: it stays as it is
            self.world.advance(self._substeps)
        except (FaultyAction, SimulationFault) as fault:
            self._invalidate(fault)
            raise
        self._steps += 1
        info = {"action_applied": applied.astype(np.float32)}
        return self._observe(), 0.0, False, self._steps >= self.horizon, info

    def _inside(self, action: NDArray[np.float64]) -> NDArray[np.float64]:
        """The action, cut so that it leads to a pose in the box."""
        position, quaternion = (part.astype(np.float64) for part in self._hand)
        applied = action.copy()
        applied[:3] = (np.clip(position + POSITION_STEP * action[:3], self._low, self._high) - position) / POSITION_STEP
        if len(action) > 3:
            turned = Rotation.from_quat(quaternion) * self._upright.inv()
            asked = Rotation.from_rotvec(ROTATION_STEP * action[3:6]) * turned
            allowed = Rotation.from_rotvec(np.clip(asked.as_rotvec(), -TURNED, TURNED))
            applied[3:6] = (allowed * turned.inv()).as_rotvec() / ROTATION_STEP
        return np.clip(applied, -1.0, 1.0)

    def _observe(self) -> dict[str, np.ndarray]:
        offered = super()._observe()
        self._hand = offered["eef_pos"], offered["eef_quat"]
        return {channel.name: offered[channel.name] for channel in self.contract.observation}
