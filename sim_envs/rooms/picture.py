"""The maze from above as pixels, fast enough for every step of a video."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sim_envs.rooms.layout import HIGH, LAYOUTS, LOW, Layout

SIZE = 160
"""Pixels along each side."""
_WALL, _FLOOR, _GOAL, _POINT = (60, 60, 60), (245, 245, 240), (150, 205, 150), (200, 40, 30)
_HALF_WALL, _GOAL_RADIUS, _POINT_RADIUS = 0.015, 0.06, 0.04


def draw_room(layout: Layout, position: NDArray[np.floating]) -> NDArray[np.uint8]:
    """(SIZE, SIZE, 3) uint8 RGB, y upwards: walls, goals and the point at (2,) metres."""
    picture = _background(layout.name).copy()
    picture[_disc(position, _POINT_RADIUS)] = _POINT
    return picture


@lru_cache(maxsize=8)
def _background(name: str) -> NDArray[np.uint8]:
    layout = LAYOUTS[name]
    picture = np.full((SIZE, SIZE, 3), _FLOOR, np.uint8)
    x, y = _grid()
    for goal in layout.goals.values():
        picture[_disc(np.array(goal), _GOAL_RADIUS)] = _GOAL
    for (x0, y0), (x1, y1) in layout.segments:
        wall = (x > x0 - _HALF_WALL) & (x < x1 + _HALF_WALL) & (y > y0 - _HALF_WALL) & (y < y1 + _HALF_WALL)
        picture[wall] = _WALL
    return picture


def _grid() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    places = LOW + (np.arange(SIZE) + 0.5) / SIZE * (HIGH - LOW)
    return places[None, :], places[::-1, None]


def _disc(centre: NDArray[np.floating], radius: float) -> NDArray[np.bool_]:
    x, y = _grid()
    return (x - centre[0]) ** 2 + (y - centre[1]) ** 2 < radius**2
