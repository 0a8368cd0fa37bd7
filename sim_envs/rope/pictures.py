"""A rope seen from above. Up is +x, away from the robot; left is its left, +y."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from sim_envs.rope.rope import HIGH, LOW, RADIUS

_FIELD, _GOAL, _SUBGOAL, _ROPE = (244, 243, 238), (46, 139, 87, 130), (222, 140, 30, 90), (40, 90, 170, 255)
_SHARP = 2


def draw_rope(
    beads: NDArray[np.floating], goal: NDArray[np.floating], subgoals: Sequence[NDArray[np.floating]] = (), pixels_per_metre: int = 640
) -> NDArray[np.uint8]:
    """A picture of the field, RGB: the rope, its goal and subgoals, each (15, 2) or (30,), metres in frame base."""
    scale = pixels_per_metre * _SHARP
    width, height = (int((HIGH - LOW)[axis] * scale) for axis in (1, 0))
    picture = Image.new("RGB", (width, height), _FIELD)
    canvas = ImageDraw.Draw(picture, "RGBA")
    for shape, colour in ((goal, _GOAL), *((subgoal, _SUBGOAL) for subgoal in subgoals), (beads, _ROPE)):
        points = [((HIGH[1] - y) * scale, (HIGH[0] - x) * scale) for x, y in np.reshape(shape, (-1, 2))]
        canvas.line(points, fill=colour, width=int(RADIUS * scale), joint="curve")
        for x, y in points:
            half = RADIUS * scale
            canvas.ellipse((x - half, y - half, x + half, y + half), fill=colour)
    return np.asarray(picture.resize((width // _SHARP, height // _SHARP), Image.Resampling.LANCZOS))
