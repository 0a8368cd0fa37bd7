"""The task rewards of each domain as functions of observations, all in [0, 1].

walker stand, walk, run; quadruped walk, run; hopper stand, hop and reacher easy are dm_control's own (`suite/*.py`). The others are those
of the Unsupervised RL Benchmark (`custom_dmc_tasks/*.py`): walker flip, quadruped stand and jump, hopper hop_backward and the two flips.
They read the state after the action, as dm_control does.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim_envs.reward_free.rewards import Array, Columns, Reward, columns
from sim_envs.reward_free.tolerance import gaussian, linear, within

COLUMNS: Mapping[str, Columns] = {
    "walker": columns({"orientations": 14, "height": 1, "velocity": 9, "speed": 1, "angular_momentum": 1}),
    "quadruped": columns(
        {"egocentric_state": 44, "torso_velocity": 3, "torso_upright": 1, "imu": 6, "force_torque": 24, "com_height": 1}
    ),
    "hopper": columns({"position": 6, "velocity": 7, "touch": 2, "height": 1, "speed": 1, "angular_momentum": 1}),
    "reacher": columns({"position": 2, "to_target": 2, "velocity": 2}),
}  # fmt: skip
"""Domain -> part of the observation -> its columns: dm_control's own parts in its order, then what a reward needs besides."""

STAND_HEIGHT = {"walker": 1.2, "hopper": 0.6}
"""Metres: of the walker's torso over the ground, of the hopper's over its foot."""
SPIN = 5.0
"""Angular momentum about y from which on a flip is one, kg m^2/s."""
JUMP_HEIGHT = 1.0
"""Of the quadruped's centre of mass, metres."""
REACHER_RADII = 0.05 + 0.01
"""Of the easy task's target and of the finger, metres."""


def _number(observation: Array, domain: str, name: str) -> Array:
    """A part of one number, without its axis."""
    return observation[..., COLUMNS[domain][name].start]


def _walker_standing(after: Array) -> Array:
    standing = gaussian(_number(after, "walker", "height"), STAND_HEIGHT["walker"], margin=STAND_HEIGHT["walker"] / 2)
    # The first body is the torso, the first number x.x of its rotation; in the plane that is z.z, how upright it is.
    upright = (1.0 + _number(after, "walker", "orientations")) / 2.0
    return (3.0 * standing + upright) / 4.0


def walker_stand(observation: Array, action: Array, next_observation: Array) -> Array:
    """(3 standing + upright) / 4."""
    return _walker_standing(next_observation)


def walker_move(speed: float) -> Reward:
    """walker_stand (5 moving + 1) / 6, where moving is 1 from `speed` m/s on."""

    def reward(observation: Array, action: Array, next_observation: Array) -> Array:
        moving = linear(_number(next_observation, "walker", "speed"), speed, margin=speed / 2, value_at_margin=0.5)
        return _walker_standing(next_observation) * (5.0 * moving + 1.0) / 6.0

    return reward


def walker_flip(observation: Array, action: Array, next_observation: Array) -> Array:
    """walker_stand (5 spinning + 1) / 6."""
    spinning = linear(_number(next_observation, "walker", "angular_momentum"), SPIN, margin=SPIN, value_at_margin=0.0)
    return _walker_standing(next_observation) * (5.0 * spinning + 1.0) / 6.0


def quadruped_stand(observation: Array, action: Array, next_observation: Array) -> Array:
    """How upright the torso is: 0 upside down, 1 upright."""
    return linear(_number(next_observation, "quadruped", "torso_upright"), 1.0, margin=2.0, value_at_margin=0.0)


def quadruped_move(speed: float) -> Reward:
    """quadruped_stand times moving, which is 1 from `speed` m/s along the torso's own x axis on."""

    def reward(observation: Array, action: Array, next_observation: Array) -> Array:
        moving = linear(_number(next_observation, "quadruped", "torso_velocity"), speed, margin=speed, value_at_margin=0.5)
        return quadruped_stand(observation, action, next_observation) * moving

    return reward


def quadruped_jump(observation: Array, action: Array, next_observation: Array) -> Array:
    """quadruped_stand times how high the centre of mass is."""
    high = linear(_number(next_observation, "quadruped", "com_height"), JUMP_HEIGHT, margin=JUMP_HEIGHT, value_at_margin=0.5)
    return quadruped_stand(observation, action, next_observation) * high


def _hopper_standing(after: Array) -> Array:
    return within(_number(after, "hopper", "height"), STAND_HEIGHT["hopper"], 2.0)


def hopper_stand(observation: Array, action: Array, next_observation: Array) -> Array:
    """Standing, times (small control + 4) / 5."""
    small = np.clip(1.0 - np.square(action), 0.0, 1.0).mean(axis=-1)
    return _hopper_standing(next_observation) * (small + 4.0) / 5.0


def hopper_hop(direction: float) -> Reward:
    """Standing, times moving at 2 m/s forward (direction 1) or backward (-1)."""

    def reward(observation: Array, action: Array, next_observation: Array) -> Array:
        speed = direction * _number(next_observation, "hopper", "speed")
        return _hopper_standing(next_observation) * linear(speed, 2.0, margin=1.0, value_at_margin=0.5)

    return reward


def hopper_flip(direction: float) -> Reward:
    """Standing, times spinning forward (direction 1) or backward (-1)."""

    def reward(observation: Array, action: Array, next_observation: Array) -> Array:
        spin = direction * _number(next_observation, "hopper", "angular_momentum")
        return _hopper_standing(next_observation) * linear(spin, SPIN, margin=SPIN, value_at_margin=0.0)

    return reward


def reacher_easy(observation: Array, action: Array, next_observation: Array) -> Array:
    """1 where finger and target overlap."""
    distance = np.linalg.norm(next_observation[..., COLUMNS["reacher"]["to_target"]], axis=-1)
    return within(distance, 0.0, REACHER_RADII)


REWARDS: Mapping[str, Mapping[str, Reward]] = {
    "walker": {"stand": walker_stand, "walk": walker_move(1.0), "run": walker_move(8.0), "flip": walker_flip},
    "quadruped": {"stand": quadruped_stand, "walk": quadruped_move(0.5), "run": quadruped_move(5.0), "jump": quadruped_jump},
    "hopper": {
        "stand": hopper_stand,
        "hop": hopper_hop(1.0),
        "hop_backward": hopper_hop(-1.0),
        "flip": hopper_flip(1.0),
        "flip_backward": hopper_flip(-1.0),
    },
    "reacher": {"easy": reacher_easy},
}
"""Domain -> name -> reward."""
