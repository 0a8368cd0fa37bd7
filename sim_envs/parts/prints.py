"""What is printed on parts and tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim_envs.parts.household import OBJECTS, household_picture
from sim_envs.parts.packaged import packaged_texture


def texture(name: str) -> NDArray[np.uint8]:
    """A texture of robosuite's, or the picture of a household object, which is larger: (side, side, 3) uint8."""
    return household_picture(name) if name in OBJECTS else packaged_texture(name)
