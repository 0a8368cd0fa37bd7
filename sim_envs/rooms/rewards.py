"""The named rewards of a maze: its goals, sparse and dense."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim_envs.reward_free.rewards import Array, Reward, columns
from sim_envs.reward_free.tolerance import linear, within
from sim_envs.rooms.layout import LAYOUTS, Layout

GOAL_RADIUS = 0.15
"""Within it a goal is reached, metres."""
REACH = 1.0
"""This far from the goal's circle a dense reward has fallen to 0, metres."""
COLUMNS = columns({"position": 2})


def at_goal(goal: tuple[float, float]) -> Reward:
    """1 within `GOAL_RADIUS` of the goal, 0 elsewhere."""

    def reward(observation: Array, action: Array, next_observation: Array) -> Array:
        return within(_distance(next_observation, goal), 0.0, GOAL_RADIUS)

    return reward


def near_goal(goal: tuple[float, float]) -> Reward:
    """1 within `GOAL_RADIUS` of the goal, falling to 0 over `REACH`; walls do not count."""

    def reward(observation: Array, action: Array, next_observation: Array) -> Array:
        return linear(-_distance(next_observation, goal), -GOAL_RADIUS, margin=REACH, value_at_margin=0.0)

    return reward


def _distance(observation: Array, goal: tuple[float, float]) -> Array:
    return np.linalg.norm(observation[..., COLUMNS["position"]] - np.array(goal), axis=-1)


def goal_rewards(layout: Layout) -> Mapping[str, Reward]:
    """`NAME` is `at_goal`, `near_NAME` is `near_goal`, for every goal of the maze."""
    sparse = {name: at_goal(goal) for name, goal in layout.goals.items()}
    return sparse | {f"near_{name}": near_goal(goal) for name, goal in layout.goals.items()}


REWARDS: Mapping[str, Mapping[str, Reward]] = {name: goal_rewards(layout) for name, layout in LAYOUTS.items()}
"""Maze -> name -> reward."""
