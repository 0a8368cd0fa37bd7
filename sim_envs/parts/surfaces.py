"""Colours, surfaces and table tops: what objects and the table look like, apart from the light.

Surfaces are grey patterns that a colour multiplies. Those of the shift `texture` occur nowhere else.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from sim_envs.parts.prints import texture

COLOURS: dict[str, tuple[float, float, float]] = {
    "red": (0.80, 0.10, 0.10),
    "orange": (0.92, 0.45, 0.05),
    "yellow": (0.92, 0.80, 0.12),
    "green": (0.12, 0.58, 0.18),
    "blue": (0.10, 0.25, 0.78),
    "purple": (0.48, 0.16, 0.62),
    "pink": (0.92, 0.45, 0.62),
    "brown": (0.42, 0.24, 0.12),
    "white": (0.92, 0.92, 0.90),
    "gray": (0.48, 0.48, 0.50),
    "black": (0.10, 0.10, 0.11),
}
SURFACES = ("plain", "speckled", "brushed", "cloudy")
SHIFTED_SURFACES = ("striped", "checkered", "spotted")

TABLES: dict[str, str] = {
    "light-wood": "wooden",
    "wood-varnished-panels": "wooden",
    "dark-wood": "dark wooden",
    "gray-felt": "felt",
    "white-plaster": "white",
    "steel-brushed": "steel",
    "cream-plaster": "cream",
    "gray-plaster": "gray",
}
"""Texture -> word of captions."""
SHIFTED_TABLES: dict[str, str] = {
    "white-bricks": "brick",
    "light-gray-floor-tile": "tiled",
    "green-wood": "green",
    "dirt": "earth",
    "wood-tiles": "parquet",
    "pink-plaster": "pink",
}
SPURIOUS_TABLES: dict[str, tuple[float, float, float]] = {"orange": (0.85, 0.55, 0.30), "blue": (0.35, 0.55, 0.90)}
"""Colours of a plain table that follow the class in the shift `spurious`: classes of even label have the first one."""


@cache
def surface(name: str) -> NDArray[np.uint8]:
    """The pattern of a surface, (64, 64, 3), grey; the same for ever."""
    side = 64
    generator = np.random.default_rng(sum(map(ord, name)))
    rows, columns = np.mgrid[0:side, 0:side]
    if name == "plain":
        grey = np.full((side, side), 0.95)
    elif name == "speckled":
        grey = np.where(generator.random((side, side)) < 0.12, 0.55, 0.95)
    elif name == "brushed":
        grey = np.broadcast_to(generator.uniform(0.72, 1.0, (side, 1)), (side, side))
    elif name == "cloudy":
        waves = sum(np.sin(2 * np.pi * (generator.integers(1, 4, 2) @ np.array([rows.ravel(), columns.ravel()])) / side) for _ in range(4))
        grey = 0.82 + 0.04 * np.reshape(waves, (side, side))
    elif name == "striped":
        grey = np.where(columns // 8 % 2 == 0, 1.0, 0.45)
    elif name == "checkered":
        grey = np.where((columns // 16 + rows // 16) % 2 == 0, 1.0, 0.4)
    else:
        grey = np.where((columns % 16 - 8) ** 2 + (rows % 16 - 8) ** 2 < 20, 0.35, 1.0)
    return np.repeat((255 * grey).astype(np.uint8)[..., None], 3, axis=2)


@cache
def grey_print(name: str) -> NDArray[np.uint8]:
    """A texture without its colours, bright enough to be coloured; of its size."""
    grey = texture(name).astype(np.float64).mean(axis=2)
    low, high = np.percentile(grey, (2, 98))
    bright = 110 + 145 * np.clip(1 - (high - grey) / max(high - low, 80.0), 0, 1)
    return np.repeat(bright.astype(np.uint8)[..., None], 3, axis=2)
