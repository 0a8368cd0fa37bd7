"""The shortest way through a maze: Dijkstra over the cells, pulled tight, cut into steps that the gripper can make."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import dijkstra

from sim_envs.maze.layout import COLUMNS, HALF_WIDTH, ROWS, Maze, cell_of, centre

CLEARANCE = HALF_WIDTH + 0.006
"""Least distance kept from walls, metres: a step, made along x and y in turn, leaves the straight line by up to 5 mm."""
_SIGHT = 0.004
"""A line is checked at points this far apart, metres."""
_NEIGHBOURS = ((1, 0), (0, 1), (1, 1), (1, -1))


def plan(maze: Maze, step: float) -> NDArray[np.float64]:
    """Points (k, 2) from start to goal, metres, each within `step` of the one before, along straight lines.

    Raises:
        ValueError: no way leads to the goal.
    """
    corners = _pull_tight(_cells(maze), maze)
    points = [corners[:1]]
    for begin, end in pairwise(corners):
        count = int(np.ceil(np.linalg.norm(end - begin) / step - 1e-9))
        points.append(begin + (end - begin) * (np.arange(1, count + 1) / count)[:, None])
    return np.concatenate(points)


def _cells(maze: Maze) -> NDArray[np.float64]:
    """Start, the middles of the cells of a shortest 8-connected way that cuts no corners, goal: (k, 2), metres."""
    free = ~np.pad(maze.walls, 1, constant_values=True)
    inner = np.argwhere(free)
    begins, ends, lengths = [], [], []
    for dx, dy in _NEIGHBOURS:
        x, y = inner.T
        open_ = free[x + dx, y + dy] & free[x + dx, y] & free[x, y + dy]
        begins.append(np.ravel_multi_index((x[open_], y[open_]), free.shape))
        ends.append(np.ravel_multi_index((x[open_] + dx, y[open_] + dy), free.shape))
        lengths.append(np.full(open_.sum(), np.hypot(dx, dy)))
    begin, end, length = map(np.concatenate, (begins, ends, lengths))
    graph = coo_matrix((length, (begin, end)), (free.size, free.size)).tocsr()
    first, last = (int(np.ravel_multi_index(tuple(cell_of(point) + 1), free.shape)) for point in (maze.start, maze.goal))
    distance, before = dijkstra(graph, directed=False, indices=last, return_predecessors=True)
    if not np.isfinite(distance[first]):
        raise ValueError(f"no way leads from {maze.start} to {maze.goal}")
    way = [first]
    while way[-1] != last:
        way.append(int(before[way[-1]]))
    middles = centre(np.stack(np.unravel_index(way, free.shape), axis=1) - 1)
    return np.concatenate([maze.start[None], middles, maze.goal[None]])


def _pull_tight(way: NDArray[np.float64], maze: Maze) -> NDArray[np.float64]:
    """Leaves out points between two that see each other."""
    tight, here = [way[0]], 0
    while here < len(way) - 1:
        seen = np.flatnonzero(_sees(way[here], way[here + 1 :], maze))
        here += 1 + int(seen.max(initial=0))
        tight.append(way[here])
    return np.array(tight)


def _sees(begin: NDArray[np.float64], ends: NDArray[np.float64], maze: Maze) -> NDArray[np.bool_]:
    """To which of some points (k, 2) the straight line keeps its clearance: (k,)."""
    count = int(np.linalg.norm(ends - begin, axis=1).max() / _SIGHT) + 2
    lines = begin + (ends - begin)[:, None] * np.linspace(0.0, 1.0, count)[:, None]
    corners = lines[:, :, None] + CLEARANCE * np.array([(1, 1), (1, -1), (-1, 1), (-1, -1)])
    return ~solid(maze.walls, corners).any(axis=(1, 2))


def solid(walls: NDArray[np.bool_], points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether points (..., 2) of one maze lie in a wall or outside."""
    row, column = np.moveaxis(cell_of(points), -1, 0)
    inside = (row >= 0) & (row < ROWS) & (column >= 0) & (column < COLUMNS)
    return ~inside | walls[np.clip(row, 0, ROWS - 1), np.clip(column, 0, COLUMNS - 1)]
