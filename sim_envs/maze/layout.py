"""Random four-room mazes: 10 x 11 cells of 5 cm, two walls across, a gate in each of their four arms.

. . . . # . . . . . .
. S . . . . . . . . .     S starts in the first room, G is in the one across; of the two ways round, gates decide which is
. . . . # . . . . . .     shorter. Rows run along +x, columns along +y.
# . # # # # # . # # #
. . . . # . . . . . .
. . . . # . . . . G .
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

ROWS, COLUMNS = 10, 11
"""Cells along x and along y."""
CELL = 0.05
"""Edge of a cell, metres."""
LOW = np.array([0.22, -0.275])
HIGH = LOW + CELL * np.array([ROWS, COLUMNS])
"""Corners of the maze, metres in frame base: it lies on the arm's table, within its reach."""
HEIGHT = -0.082
"""Height of the fingertips, metres in frame base: 3 cm over the table. It never changes."""
HALF_WIDTH = 0.01
"""The closed fingers fill a square with sides of twice this, metres."""
START_CELL, GOAL_CELL = (1, 3), (9, 9)
"""Where `corners` begin and end [code]."""

Ends = Literal["corners", "rooms"]


@dataclass(frozen=True, kw_only=True)
class Maze:
    """One maze.

    Attributes:
        walls: (10, 11) bool, True where a cell is a wall.
        start: (2,) where the gripper starts, metres.
        goal: (2,) metres.
    """

    walls: NDArray[np.bool_]
    start: NDArray[np.float64]
    goal: NDArray[np.float64]


def four_rooms(seed: int, ends: Ends = "corners") -> Maze:
    """The maze of an episode; it follows from `seed` alone.

    Args:
        seed: of the episode.
        ends: `corners`: start and goal are the same in every maze, as in the paper's code; `rooms`: anywhere in the first room, and
            anywhere in the room across.

    Raises:
        ValueError: unknown `ends`.
    """
    if ends not in ("corners", "rooms"):
        raise ValueError(f"ends {ends!r}, valid: corners, rooms")
    rng = np.random.default_rng(seed)
    row, column = int(rng.integers(3, 8)), int(rng.integers(4, 8))
    walls = np.zeros((ROWS, COLUMNS), bool)
    walls[row, :] = walls[:, column] = True
    walls[row, rng.integers(1, column)] = walls[row, rng.integers(column + 1, 9)] = False
    walls[rng.integers(1, row), column] = walls[rng.integers(row + 1, 9), column] = False
    if ends == "corners":
        return Maze(walls=walls, start=centre(START_CELL), goal=centre(GOAL_CELL))
    room = 0.4 * CELL  # ends keep off the walls
    first, across = np.array([[0, 0], [row, column]]), np.array([[row + 1, column + 1], [ROWS, COLUMNS]])
    start, goal = (rng.uniform(LOW + CELL * low + room, LOW + CELL * high - room) for low, high in (first, across))
    return Maze(walls=walls, start=start, goal=goal)


def centre(cell: tuple[int, int] | NDArray[np.int64]) -> NDArray[np.float64]:
    """The middle of cells (..., 2), metres (..., 2)."""
    return LOW + CELL * (np.asarray(cell) + 0.5)


def cell_of(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """The cells (..., 2) that points (..., 2) lie in; -1 or beyond the last one outside."""
    return np.floor((points - LOW) / CELL).astype(np.int64)
