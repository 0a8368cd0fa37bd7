"""Outlines of prisms: closed curves around the origin, sampled in the directions of all their corners."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def circle(radius: float, count: int = 48) -> Array:
    """A circle (count, 2)."""
    angles = np.arange(count) / count * 2 * np.pi
    points: Array = radius * np.column_stack([np.cos(angles), np.sin(angles)])
    return points


def polygon(sides: int, radius: float, per_side: int = 8) -> Array:
    """A regular polygon (sides * per_side, 2) whose corners are `radius` from the middle."""
    corners = circle(radius, sides)
    return _sampled(corners, per_side)


def star(points: int, radius: float, depth: float, per_side: int = 4) -> Array:
    """A star; `depth` is the share of the radius between tips and notches."""
    corners = circle(1.0, 2 * points) * np.where(np.arange(2 * points) % 2 == 0, radius, radius * (1 - depth))[:, None]
    return _sampled(corners, per_side)


def _sampled(corners: Array, per_side: int) -> Array:
    share: Array = (np.arange(per_side) / per_side)[None, :, None]
    between: Array = corners[:, None] + share * (np.roll(corners, -1, axis=0) - corners)[:, None]
    return between.reshape(-1, 2)


def cog(teeth: int, radius: float, depth: float, missing: tuple[int, ...] = ()) -> Array:
    """A gear's outline (8 * teeth, 2) with trapezoid teeth.

    Args:
        teeth: how many there is room for.
        radius: to the tips.
        depth: height of a tooth, as a share of the radius.
        missing: teeth that are not there.
    """
    share = np.array([0.0, 0.12, 0.26, 0.32, 0.50, 0.68, 0.74, 0.88])  # of one tooth's angle
    high = np.array([0, 0, 0, 1, 1, 1, 0, 0])
    angles = ((np.arange(teeth)[:, None] + share) / teeth * 2 * np.pi).reshape(-1)
    there = np.repeat(~np.isin(np.arange(teeth), missing), len(share)) * np.tile(high, teeth)
    radii = radius * np.where(there, 1.0, 1.0 - depth)
    return radii[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])


def round_hole(outline: Array, radius: float) -> Array:
    """A round hole whose points lie in the directions of an outline's."""
    return radius * outline / np.linalg.norm(outline, axis=1, keepdims=True)
