"""Renderer: pictures of an arm world without a screen.

The graphics library is chosen by drawing one picture in a child process, so that a driver that aborts takes nothing along: EGL first,
then OSMesa, or what MUJOCO_GL names. Nothing else in this package imports graphics.
"""

from __future__ import annotations

import atexit
import importlib
import os
import subprocess
import sys
import weakref
from functools import cache
from typing import Any

import mujoco
import numpy as np

from rl_core.errors import ArmstackError
from sim_envs.arm import scene
from sim_envs.arm.scene import CAMERAS
from sim_envs.arm.tasks import find_task
from sim_envs.arm.world import ArmWorld

BACKENDS = ("egl", "osmesa")
PROBE_TIMEOUT_S = 60.0
_OFF = ("", "disable", "disabled", "off", "false", "0", "enable", "enabled", "on", "true", "1")

_PROBE = """
import importlib, os, sys
os.environ["MUJOCO_GL"] = "disable"
import mujoco
context = importlib.import_module("mujoco." + sys.argv[1]).GLContext(16, 16)
context.make_current()
model = mujoco.MjModel.from_xml_string('<mujoco><worldbody><light/><geom type="plane" size="9 9 1" rgba="1 0 0 1"/></worldbody></mujoco>')
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
drawing = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, drawing)
scene = mujoco.MjvScene(model, 10)
camera = mujoco.MjvCamera()
camera.distance, camera.elevation = 1.0, -90
mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, camera, mujoco.mjtCatBit.mjCAT_ALL, scene)
import numpy
picture = numpy.zeros((16, 16, 3), numpy.uint8)
mujoco.mjr_render(mujoco.MjrRect(0, 0, 16, 16), scene, drawing)
mujoco.mjr_readPixels(picture, None, mujoco.MjrRect(0, 0, 16, 16), drawing)
print("drawn" if picture[8, 8, 0] > 0 else "black", flush=True)
os._exit(0)  # some drivers crash while they are unloaded
"""


class RenderingUnavailable(ArmstackError, RuntimeError):
    """No graphics library draws on this machine; the message says what to set or install."""


@cache
def working_backend(wanted: str | None = None) -> str:
    """The first of `BACKENDS` that draws, or `wanted`, if it does.

    Raises:
        RenderingUnavailable: none draws; says why for each, and what to set or install.
    """
    reasons = {}
    for backend in (wanted,) if wanted else BACKENDS:
        reason = _probe(backend)
        if reason is None:
            return backend
        reasons[backend] = reason
    found = "\n".join(f"  {backend}: {reason}" for backend, reason in reasons.items())
    raise RenderingUnavailable(
        f"cameras need a graphics library that draws without a screen; none does:\n{found}\n"
        "Set MUJOCO_GL to egl or osmesa to choose one, and install it (Debian, Ubuntu):\n"
        "  apt install libegl1 libegl-mesa0 libgl1    # MUJOCO_GL=egl\n"
        "  apt install libosmesa6 libgl1              # MUJOCO_GL=osmesa"
    )


def _probe(backend: str) -> str | None:
    """None if `backend` draws in a child process, else why not."""
    environment = {name: value for name, value in os.environ.items() if name != "PYOPENGL_PLATFORM"}
    try:
        child = subprocess.run(
            [sys.executable, "-c", _PROBE, backend], env=environment, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {PROBE_TIMEOUT_S:.0f} s"
    if child.stdout.strip() == "drawn":
        return None
    lines = (child.stdout + child.stderr).strip().splitlines()
    return lines[-1] if lines else f"the probe ended with status {child.returncode}"


def chosen_backend() -> str:
    """What MUJOCO_GL names, or else the first of `BACKENDS` that draws; raises RenderingUnavailable as `working_backend` does."""
    wanted = os.environ.get("MUJOCO_GL", "").lower().strip()
    return working_backend(None if wanted in _OFF else wanted)


class Canvas:
    """The graphics memory that a model is drawn into. To be used from the thread that made it, as graphics contexts are.

    Args:
        model: has set how large pictures may become (`vis.global_.offwidth`, `offheight`).
        width, height: pixels.

    Attributes:
        drawing: MuJoCo's context, for `mjr_render` and `mjr_readPixels`.

    Raises:
        RenderingUnavailable: no graphics library draws here.
    """

    def __init__(self, model: mujoco.MjModel, width: int, height: int) -> None:
        self._context: Any = _graphics_context(chosen_backend(), width, height)
        self.make_current()
        self.drawing: Any = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self.drawing)
        # At exit drivers go before objects do; a canvas that was not closed must go before both.
        atexit.register(_close, weakref.ref(self))

    def make_current(self) -> None:
        """To be called before each picture: another canvas of this thread may have been drawn into."""
        self._context.make_current()

    def close(self) -> None:
        """Frees the memory; calling it again does nothing."""
        if self._context is not None:
            self.make_current()
            self.drawing.free()
            self._context.free()
            self._context = None

    def __del__(self) -> None:
        if hasattr(self, "drawing"):  # there is none where the graphics library failed
            self.close()


def _close(canvas: weakref.ref[Canvas]) -> None:
    alive = canvas()
    if alive is not None:
        alive.close()


class Renderer:
    """Draws a world's positions as one of its cameras sees them. To be used from the thread that made it, as graphics contexts are.

    Args:
        world: the world to draw, or a task's name. From a world the sizes of objects and the place of a goal are taken too.
        width: pixels.
        height: pixels.
        camera: `front` or `wrist`.

    Raises:
        ValueError: unknown camera or task.
        RenderingUnavailable: no graphics library draws here.
    """

    def __init__(self, world: ArmWorld | str, width: int = 256, height: int = 256, camera: str = "front") -> None:
        if camera not in CAMERAS:
            raise ValueError(f"no camera {camera!r}; cameras: {', '.join(CAMERAS)}")
        self._world = None if isinstance(world, str) else world
        task = find_task(world) if isinstance(world, str) else world.task
        self._model = scene.build(task, "joint_position", visual=True)
        self._model.vis.global_.offwidth = max(width, self._model.vis.global_.offwidth)
        self._model.vis.global_.offheight = max(height, self._model.vis.global_.offheight)
        self._data = mujoco.MjData(self._model)
        self._camera = mujoco.MjvCamera()
        self._camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._camera.fixedcamid = self._model.camera(camera).id
        self._options = mujoco.MjvOption()
        self._canvas = Canvas(self._model, width, height)
        self._scene = mujoco.MjvScene(self._model, maxgeom=200)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        self._size = mujoco.MjrRect(0, 0, width, height)
        self._pixels = np.empty((height, width, 3), np.uint8)

    def render(self, qpos: np.ndarray) -> np.ndarray:
        """The picture of positions `qpos` (`ArmWorld.qpos`): (height, width, 3) uint8, RGB, first row on top.

        Raises:
            ValueError: `qpos` is of another task.
        """
        if np.shape(qpos) != (self._model.nq,):
            raise ValueError(f"qpos of shape {np.shape(qpos)}; this renderer's task has ({self._model.nq},)")
        if self._world is not None:
            self._model.geom_size[:] = self._world.model.geom_size
            self._data.mocap_pos[:] = self._world.data.mocap_pos
        self._data.qpos[:] = qpos
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        self._canvas.make_current()
        mujoco.mjv_updateScene(self._model, self._data, self._options, None, self._camera, mujoco.mjtCatBit.mjCAT_ALL, self._scene)
        mujoco.mjr_render(self._size, self._scene, self._canvas.drawing)
        mujoco.mjr_readPixels(self._pixels, None, self._size, self._canvas.drawing)
        return self._pixels[::-1].copy()  # OpenGL's first row is the lowest

    def close(self) -> None:
        """Frees the graphics memory; calling it again does nothing."""
        self._canvas.close()


def _graphics_context(backend: str, width: int, height: int) -> Any:
    # PyOpenGL binds to one platform at its first import; robosuite and others may have left another name here.
    if "OpenGL" not in sys.modules:
        os.environ["PYOPENGL_PLATFORM"] = backend
    try:
        return importlib.import_module(f"mujoco.{backend}").GLContext(width, height)
    except ImportError as error:
        raise RenderingUnavailable(
            f"MUJOCO_GL={backend} draws on this machine, but this process has already bound PyOpenGL to "
            f"PYOPENGL_PLATFORM={os.environ.get('PYOPENGL_PLATFORM')!r}: unset that variable, or set both to the same backend ({error})"
        ) from error
