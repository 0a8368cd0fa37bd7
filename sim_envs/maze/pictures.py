"""A maze seen from above, with ways, subgoals and the goal drawn in. Up is +x, away from the robot; left is its left, +y."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from sim_envs.maze.layout import CELL, HALF_WIDTH, HIGH, Maze

_WALL, _FLOOR, _GRID = (62, 66, 74), (244, 243, 238), (226, 225, 219)
_GOAL, _SUBGOAL, _PATH, _PLANNED = (46, 139, 87), (222, 140, 30), (40, 90, 170), (170, 170, 170)
_SHARP = 2
"""Everything is drawn this many times larger, so that lines come out smooth."""


def draw_maze(
    maze: Maze,
    *,
    path: Sequence[NDArray[np.floating]] = (),
    subgoals: Sequence[NDArray[np.floating]] = (),
    planned: Sequence[NDArray[np.floating]] = (),
    reach: float = 0.05,
    cell_pixels: int = 32,
) -> NDArray[np.uint8]:
    """A picture (10 * cell_pixels, 11 * cell_pixels, 3), RGB.

    Args:
        maze: the maze, with its start (a ring) and its goal (a disc of `reach`).
        path: where the gripper was; it is drawn at the last point.
        subgoals: circles of `reach`; a line joins them, the newest is the boldest.
        planned: another way, in grey, e.g. a demonstration's.
        reach: how near counts as there, metres.
        cell_pixels: edge of a cell, pixels.

    Every point begins with x and y, metres in frame base.
    """
    rows, columns = maze.walls.shape
    edge = cell_pixels * _SHARP
    picture = Image.new("RGB", (columns * edge, rows * edge), _FLOOR)
    canvas = ImageDraw.Draw(picture, "RGBA")

    def pixels(point: NDArray[np.floating]) -> tuple[float, float]:
        return float((HIGH[1] - point[1]) / CELL * edge), float((HIGH[0] - point[0]) / CELL * edge)

    def disc(point: NDArray[np.floating], radius: float, fill: tuple[int, ...] | None, outline: tuple[int, ...] | None = None) -> None:
        (x, y), size = pixels(point), radius / CELL * edge
        canvas.ellipse((x - size, y - size, x + size, y + size), fill=fill, outline=outline, width=edge // 12)

    def line(points: Sequence[NDArray[np.floating]], colour: tuple[int, ...], width: int) -> None:
        if len(points) > 1:
            canvas.line([pixels(point) for point in points], fill=colour, width=width, joint="curve")

    for row, column in np.ndindex(rows, columns):
        left, top = (columns - 1 - column) * edge, (rows - 1 - row) * edge
        colour = _WALL if maze.walls[row, column] else _FLOOR
        canvas.rectangle((left, top, left + edge - 1, top + edge - 1), fill=colour, outline=colour if maze.walls[row, column] else _GRID)
    disc(maze.goal, reach, (*_GOAL, 150))
    disc(maze.start, 0.4 * CELL, None, (*_PATH, 160))
    line(planned, _PLANNED, edge // 10)
    line(subgoals, (*_SUBGOAL, 120), edge // 14)
    for index, point in enumerate(subgoals):
        last = index == len(subgoals) - 1
        disc(point, reach, (*_SUBGOAL, 70 if last else 25), (*_SUBGOAL, 255 if last else 110))
        disc(point, 0.12 * CELL, _SUBGOAL)
    line(path, _PATH, edge // 10)
    if len(path):
        x, y = pixels(path[-1])
        half = HALF_WIDTH / CELL * edge
        canvas.rectangle((x - half, y - half, x + half, y + half), fill=_PATH, outline=(255, 255, 255))
    return np.asarray(picture.resize((columns * cell_pixels, rows * cell_pixels), Image.Resampling.LANCZOS))
