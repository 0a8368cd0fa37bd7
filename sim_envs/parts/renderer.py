"""PartsRenderer: draws pictures of one crate, with masks of what is the object, what are others, and what is a defect."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from sim_envs.arm.rendering import Canvas
from sim_envs.parts.catalogue import RADIUS
from sim_envs.parts.crate import Crate
from sim_envs.parts.factors import Factors
from sim_envs.parts.stage import height_of, set_stage, show

FOV_DEG = 40.0
OBJECT, OTHER, DEFECT = 1, 2, 3
"""Values of the masks; 0 is everything else."""
_RECOLOURED = 14.0
"""Grey levels by which a pixel differs where something lies on the surface."""
_MOVED = 0.0012
"""Metres by which the surface lies elsewhere where the geometry is damaged."""


class PartsRenderer:
    """To be used from the thread that made it, and closed; see `sim_envs.arm.rendering.Renderer`.

    Args:
        crate: whose objects.
        size: pixels of width and height.

    Raises:
        RenderingUnavailable: no graphics library draws here.
    """

    def __init__(self, crate: Crate, size: int) -> None:
        self.crate, self._size = crate, size
        model = crate.model
        model.vis.global_.offwidth = model.vis.global_.offheight = size
        model.vis.global_.fovy = FOV_DEG
        model.stat.extent = 1.0
        self._data = mujoco.MjData(model)
        self._camera, self._options = mujoco.MjvCamera(), mujoco.MjvOption()
        self._canvas = Canvas(model, size, size)
        self._scene = mujoco.MjvScene(model, maxgeom=200)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        self._rectangle = mujoco.MjrRect(0, 0, size, size)

    def render(
        self, label: int, factors: Factors, arrange: Callable[[Crate, Any], None] = lambda crate, data: None
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """The picture (size, size, 3), RGB with the first row on top, and its mask (size, size).

        Args:
            label: class of the object.
            factors: of the picture.
            arrange: told crate and data when the stage is set and the camera aimed, to change further what is drawn.
        """
        set_stage(self.crate, self._data, label, factors)
        self._aim(label, factors)
        arrange(self.crate, self._data)
        picture, mask, depth = self._draw(label)
        defect = self.crate.instances[label].defect
        if factors.damaged and defect is not None:
            show(self.crate, label, damaged=False)
            sound, sound_mask, sound_depth = self._draw(label)
            recoloured = np.abs(picture - sound).max(axis=-1) > _RECOLOURED
            changed = recoloured if defect.solid is None else np.abs(depth - sound_depth) > _MOVED
            mask = np.where(changed & ((mask == OBJECT) | (sound_mask == OBJECT)), DEFECT, mask)
        return _sensed(picture, mask < 0, factors), np.maximum(mask, 0).astype(np.uint8)

    def _aim(self, label: int, factors: Factors) -> None:
        azimuth, elevation = np.deg2rad(factors.azimuth_deg), np.deg2rad(factors.elevation_deg)
        right = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
        up = np.array([-np.sin(elevation) * np.cos(azimuth), -np.sin(elevation) * np.sin(azimuth), np.cos(elevation)])
        size = RADIUS * max(1.0, 0.5 + 0.5 * self.crate.instances[label].scale)
        self._camera.lookat[:] = (0, 0, height_of(self.crate, label))
        self._camera.lookat[:] += size * (factors.aside[0] * right + factors.aside[1] * up)
        self._camera.distance = factors.distance * size
        self._camera.azimuth, self._camera.elevation = factors.azimuth_deg + 180.0, -factors.elevation_deg

    def _draw(self, label: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
        """The picture, its mask with -1 where there is nothing but the sky, and the depth in metres."""
        self._canvas.make_current()
        scene, every = self._scene, mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self.crate.model, self._data, self._options, None, self._camera, every, scene)
        picture, depth = self._read(segment=False)
        names = self._read(segment=True)[0].astype(np.int64)
        index = names[..., 0] + 256 * names[..., 1] + 65536 * names[..., 2] - 1
        near, far = (getattr(self.crate.model.vis.map, plane) * self.crate.model.stat.extent for plane in ("znear", "zfar"))
        return picture.astype(np.float64), self._mask_values(label)[index], near / (1 - depth * (1 - near / far))

    def _read(self, *, segment: bool) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SEGMENT] = segment
        self._scene.flags[mujoco.mjtRndFlag.mjRND_IDCOLOR] = segment
        pixels = np.empty((self._size, self._size, 3), np.uint8)
        depth = np.empty((self._size, self._size), np.float32)
        mujoco.mjr_render(self._rectangle, self._scene, self._canvas.drawing)
        mujoco.mjr_readPixels(pixels, depth, self._rectangle, self._canvas.drawing)
        return pixels[::-1], depth[::-1]  # OpenGL's first row is the lowest

    def _mask_values(self, label: int) -> NDArray[np.int64]:
        """Mask value of each segment id; the last one is the sky's (index -1)."""
        model, parts = self.crate.model, set(self.crate.bodies.values())
        values = np.zeros(self._scene.ngeom + 1, np.int64)
        values[-1] = -1
        for drawn in self._scene.geoms[: self._scene.ngeom]:
            if drawn.objtype == mujoco.mjtObj.mjOBJ_GEOM and drawn.segid >= 0:
                body = int(model.geom_bodyid[drawn.objid])
                values[drawn.segid] = OBJECT if body == self.crate.bodies[label] else OTHER if body in parts else 0
        return values

    def close(self) -> None:
        """Frees the graphics memory; calling it again does nothing."""
        self._canvas.close()

    def __enter__(self) -> PartsRenderer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _sensed(picture: NDArray[np.float64], sky: NDArray[np.bool_], factors: Factors) -> NDArray[np.uint8]:
    # MuJoCo's sky does not follow the lights; then the lens blurs, and the sensor adds its noise.
    light = np.minimum(factors.brightness * np.array(factors.tint), 1.2)
    seen = np.where(sky[..., None], picture * light, picture)
    seen = gaussian_filter(seen, sigma=(*[factors.blur * len(picture)] * 2, 0))
    noise = np.random.default_rng([factors.seed, 1]).normal(0, 255 * factors.noise, seen.shape)
    return np.clip(np.round(seen + noise), 0, 255).astype(np.uint8)
