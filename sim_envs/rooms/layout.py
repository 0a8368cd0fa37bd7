"""Where the walls, the start and the goals of each point-mass maze are. The arena is the square [-1, 1]^2, metres.

four_rooms                 u_maze
+--------+--------+        +-----------------+
|        |        |        |     top         |
|  nw         ne  |        | left       right|
|        |        |        |        |        |
+--  ----+----  --+        |        |        |
|        |        |        |        |        |
|  sw         se  |        |        |        |
|s       |        |        |s       |   end  |
+--------+--------+        +--------+--------+
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LOW, HIGH = -1.0, 1.0
"""The arena's edges, metres."""
RADIUS = 0.01
"""Of the point mass, metres: it keeps this far from every wall."""
START = (-0.9, -0.9)
"""Episodes start within `START_SPREAD` of this corner, metres."""
START_SPREAD = 0.05


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One maze.

    Attributes:
        name: as in environment ids and on command lines.
        vertical: walls along y, (walls, 3): x, lower y, upper y.
        horizontal: walls along x, (walls, 3): y, lower x, upper x.
        goals: name -> (x, y).
    """

    name: str
    vertical: tuple[tuple[float, float, float], ...] = ()
    horizontal: tuple[tuple[float, float, float], ...] = ()
    goals: Mapping[str, tuple[float, float]]

    @property
    def segments(self) -> Array:
        """All walls, the arena's edges too, as (walls, 2, 2): both ends' x and y; for pictures."""
        walls = [((x, low), (x, high)) for x, low, high in (*self.vertical, (LOW, LOW, HIGH), (HIGH, LOW, HIGH))]
        walls += [((low, y), (high, y)) for y, low, high in (*self.horizontal, (LOW, LOW, HIGH), (HIGH, LOW, HIGH))]
        return np.array(walls)

    @cached_property
    def rectangles(self) -> Array:
        """The inner walls (walls, 2, 2): lower and upper corner, `RADIUS` beyond the line on every side."""
        corners = [((x, low), (x, high)) for x, low, high in self.vertical] + [((low, y), (high, y)) for y, low, high in self.horizontal]
        return np.array(corners) + np.array([[-RADIUS], [RADIUS]])


FOUR_ROOMS = Layout(
    name="four_rooms",
    # Doors of 0.2 m, none opposite another, so no straight line crosses two of them.
    vertical=((0.0, -1.0, -0.6), (0.0, -0.4, 0.3), (0.0, 0.5, 1.0)),
    horizontal=((0.0, -1.0, -0.8), (0.0, -0.6, 0.5), (0.0, 0.7, 1.0)),
    goals={"sw": (-0.5, -0.5), "se": (0.6, -0.6), "nw": (-0.6, 0.6), "ne": (0.6, 0.6)},
)
U_MAZE = Layout(
    name="u_maze",
    vertical=((0.0, -1.0, 0.6),),
    goals={"left": (-0.5, 0.2), "top": (0.0, 0.8), "right": (0.5, 0.2), "end": (0.8, -0.8)},
)
LAYOUTS = {layout.name: layout for layout in (FOUR_ROOMS, U_MAZE)}


def move(layout: Layout, positions: Array, steps: Array) -> Array:
    """Moves points (n, 2) by steps (n, 2), first along x, then along y; a wall takes away that part of the way that leads into it.

    A wall is a rectangle that reaches `RADIUS` beyond its line on every side; no point is ever inside of one.
    """
    moved = positions.copy()
    for axis in (0, 1):
        start, other = moved[:, axis].copy(), moved[:, 1 - axis]
        end = np.clip(start + steps[:, axis], LOW + RADIUS, HIGH - RADIUS)
        for low, high in layout.rectangles:
            faces = (other > low[1 - axis]) & (other < high[1 - axis])
            end = np.where(faces & (start <= low[axis]), np.minimum(end, low[axis]), end)
            end = np.where(faces & (start >= high[axis]), np.maximum(end, high[axis]), end)
        moved[:, axis] = end
    return moved
