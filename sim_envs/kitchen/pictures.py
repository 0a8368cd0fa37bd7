"""Pictures of a kitchen without a screen."""

from __future__ import annotations

import os
import weakref

import mujoco
import numpy as np
from gymnasium.envs.mujoco.mujoco_rendering import OffScreenViewer
from numpy.typing import NDArray

from sim_envs.arm.rendering import chosen_backend
from sim_envs.kitchen.kitchen import Kitchen


class KitchenCamera:
    """Looks over the arm's shoulder. To be used from the thread that made it, as graphics contexts are.

    Args:
        kitchen: what it sees.
        width, height: pixels.

    Raises:
        RenderingUnavailable: no graphics library draws here.
    """

    def __init__(self, kitchen: Kitchen, width: int = 320, height: int = 240) -> None:
        visual = kitchen.model.vis  # the environment asks for 2560 x 1920 pixels of 8 samples: seconds a picture without a GPU
        visual.global_.offwidth, visual.global_.offheight, visual.quality.offsamples, visual.quality.shadowsize = width, height, 4, 0
        wanted = os.environ.get("MUJOCO_GL")
        os.environ["MUJOCO_GL"] = chosen_backend()  # where the viewer looks; put back at once
        try:
            self._viewer = OffScreenViewer(kitchen.model, kitchen.data, width, height)
        finally:
            if wanted is None:
                del os.environ["MUJOCO_GL"]
            else:
                os.environ["MUJOCO_GL"] = wanted
        for costly in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):  # seconds a picture without a GPU
            self._viewer.scn.flags[costly] = False
        self._viewer.cam.distance, self._viewer.cam.azimuth, self._viewer.cam.elevation = 2.2, 70.0, -35.0  # the environment's own
        self._viewer.cam.lookat[:] = (-0.2, 0.5, 2.0)
        self._free = weakref.finalize(self, self._viewer.close)  # at exit drivers go before objects do

    def picture(self) -> NDArray[np.uint8]:
        """(height, width, 3), RGB, first row on top."""
        self._viewer.make_context_current()
        return self._viewer.render("rgb_array")

    def close(self) -> None:
        """Frees the graphics memory; calling it again does nothing."""
        self._free()
