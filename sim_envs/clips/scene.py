"""The scene of the clips: a table with a drawer, two coloured things and a hand on a column. Nothing has mass: a script says where all is.

Frame: x towards the camera, y to the right of the picture, z up; the table's top is at 0. Metres and radians.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import TracebackType

import mujoco
import numpy as np
from numpy.typing import NDArray

from sim_envs.arm.rendering import Canvas

Array = NDArray[np.float64]

KINDS = ("can", "box", "ball", "cup")
COLOURS: dict[str, tuple[float, float, float]] = {
    "red": (0.80, 0.10, 0.08), "green": (0.10, 0.55, 0.15), "blue": (0.10, 0.22, 0.75),
    "yellow": (0.90, 0.78, 0.10), "purple": (0.50, 0.12, 0.60), "white": (0.92, 0.92, 0.90),
}  # fmt: skip
HEIGHTS = {"can": 0.12, "box": 0.09, "ball": 0.10, "cup": 0.08}
"""Of the things, metres."""
DRAWER_TRAVEL = 0.13
HANDLE = (-0.165, 0.0, 0.06)
"""Of the closed drawer; y is the drawer's own."""
_HIDDEN, _DRAWN = 5, 0

_XML = """
<mujoco>
  <compiler angle="radian"/>
  <visual><headlight ambient="0.35 0.35 0.35" diffuse="0.35 0.35 0.35" specular="0 0 0"/><map znear="0.02"/></visual>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.55 0.60 0.66" rgb2="0.30 0.34 0.40" width="64" height="384"/>
  </asset>
  <worldbody>
    <light pos="0.6 -0.6 1.6" dir="-0.4 0.4 -1" diffuse="0.45 0.45 0.45" castshadow="false"/>
    <camera name="front" pos="0.86 0 0.60" xyaxes="0 1 0 -0.53 0 0.848" fovy="38"/>
    <geom name="table" type="box" size="0.40 0.48 0.02" pos="0 0 -0.02" rgba="0.62 0.52 0.40 1"/>
    <body name="cabinet" pos="-0.28 0 0.07"><geom type="box" size="0.09 0.13 0.07" rgba="0.36 0.33 0.31 1"/></body>
    <body name="drawer" pos="-0.28 0 0.06">
      <geom name="drawer_front" type="box" size="0.008 0.115 0.048" pos="0.098 0 0"/>
      <geom name="drawer_floor" type="box" size="0.08 0.105 0.004" pos="0.012 0 -0.04" rgba="0.75 0.70 0.62 1"/>
      <geom name="drawer_left" type="box" size="0.08 0.004 0.035" pos="0.012 -0.105 0"/>
      <geom name="drawer_right" type="box" size="0.08 0.004 0.035" pos="0.012 0.105 0"/>
      <geom type="capsule" size="0.009" fromto="0.12 -0.04 0 0.12 0.04 0" rgba="0.15 0.15 0.15 1"/>
    </body>
    THINGS
    <body name="hand">
      <geom type="cylinder" size="0.022 0.4" pos="0 0 0.50" rgba="0.86 0.86 0.88 1"/>
      <geom type="box" size="0.03 0.075 0.022" pos="0 0 0.10" rgba="0.22 0.23 0.26 1"/>
      <body name="finger_left"><geom type="box" size="0.014 0.009 0.045" pos="0 0 0.04" rgba="0.30 0.31 0.34 1"/></body>
      <body name="finger_right"><geom type="box" size="0.014 0.009 0.045" pos="0 0 0.04" rgba="0.30 0.31 0.34 1"/></body>
    </body>
  </worldbody>
</mujoco>
"""
_SHAPES = {
    "can": '<geom name="can" type="cylinder" size="0.042 0.06"/>'
    '<geom name="can_top" type="cylinder" size="0.036 0.002" pos="0 0 0.060" rgba="0.7 0.7 0.72 1"/>',
    "box": '<geom name="box" type="box" size="0.045 0.05 0.045"/>',
    "ball": '<geom name="ball" type="sphere" size="0.05"/>',
    "cup": '<geom name="cup" type="cylinder" size="0.048 0.04"/>'
    '<geom name="cup_inside" type="cylinder" size="0.040 0.002" pos="0 0 0.040" rgba="0.12 0.10 0.10 1"/>'
    '<geom name="cup_ear" type="capsule" size="0.008" fromto="0 0.056 -0.02 0 0.056 0.02"/>',
}


@dataclass(frozen=True, kw_only=True)
class Thing:
    """A thing on the table: `kind` of `KINDS`, `colour` of `COLOURS`."""

    kind: str
    colour: str

    @property
    def words(self) -> str:
        """As a sentence names it."""
        return f"the {self.colour} {self.kind}"


@dataclass(frozen=True, kw_only=True)
class State:
    """Where everything is at one moment.

    Attributes:
        hand: (3,) between the finger tips.
        grip: distance of the fingers from the middle.
        things: (2, 3) middles of the two things.
        tilts: (2,) turn of each about x.
        tilt: turn of the hand about x.
        drawer: how far it is open.
    """

    hand: Array
    grip: float
    things: Array
    tilts: Array
    tilt: float = 0.0
    drawer: float = 0.0

    def towards(self, other: State, share: float) -> State:
        """The state at a share 0..1 of the way to another one."""
        names = ("hand", "grip", "things", "tilts", "tilt", "drawer")
        return replace(self, **{name: (1 - share) * getattr(self, name) + share * getattr(other, name) for name in names})


@dataclass(frozen=True, kw_only=True)
class Looks:
    """What of a scene does not move: the things, colour and side of the drawer, table, light and camera."""

    things: tuple[Thing, Thing]
    drawer_colour: str
    drawer_y: float
    table_rgb: tuple[float, float, float]
    light: float
    shift: tuple[float, float, float]


class ClipRenderer:
    """Draws states. To be used from the thread that made it, and closed; see `sim_envs.arm.rendering.Renderer`.

    Args:
        size: pixels of width and height.

    Raises:
        RenderingUnavailable: no graphics library draws here.
    """

    def __init__(self, size: int) -> None:
        bodies = "".join(f'<body name="{kind}">{shape}</body>' for kind, shape in _SHAPES.items())
        self._model = model = mujoco.MjModel.from_xml_string(_XML.replace("THINGS", bodies))
        model.vis.global_.offwidth = model.vis.global_.offheight = size
        model.vis.quality.shadowsize, model.vis.quality.offsamples = 0, 0  # each costs more than the picture
        self._data = mujoco.MjData(model)
        self._eye = model.cam_pos[0].copy()
        self._lamp = model.light_diffuse[0].copy()
        self._camera, self._options = mujoco.MjvCamera(), mujoco.MjvOption()
        self._camera.type, self._camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, model.camera("front").id
        self._canvas = Canvas(model, size, size)
        self._scene = mujoco.MjvScene(model, maxgeom=60)
        for costly in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self._scene.flags[costly] = False
        self._rectangle = mujoco.MjrRect(0, 0, size, size)
        self._pixels = np.empty((size, size, 3), np.uint8)

    def dress(self, looks: Looks) -> None:
        """What the next states are of."""
        model = self._model
        for kind in KINDS:
            for geom in self._geoms(kind):
                model.geom_group[geom] = _HIDDEN
        for thing in looks.things:
            for geom in self._geoms(thing.kind):
                model.geom_group[geom] = _DRAWN
                if not model.geom(geom).name.endswith(("_top", "_inside")):
                    model.geom_rgba[geom] = (*COLOURS[thing.colour], 1.0)
        for part in ("drawer_front", "drawer_left", "drawer_right"):
            model.geom_rgba[model.geom(part).id] = (*COLOURS[looks.drawer_colour], 1.0)
        model.geom_rgba[model.geom("table").id] = (*looks.table_rgb, 1.0)
        model.light_diffuse[0] = looks.light * self._lamp
        model.cam_pos[0] = self._eye + looks.shift
        model.body_pos[model.body("cabinet").id][1] = looks.drawer_y
        self._looks = looks

    def render(self, state: State) -> NDArray[np.uint8]:
        """The picture (size, size, 3), RGB, first row on top."""
        model, body = self._model, self._model.body
        for thing, place, tilt in zip(self._looks.things, state.things, state.tilts, strict=True):
            model.body_pos[body(thing.kind).id] = place
            model.body_quat[body(thing.kind).id] = _about_x(tilt)
        model.body_pos[body("drawer").id] = (-0.28 + state.drawer, self._looks.drawer_y, HANDLE[2])
        model.body_pos[body("hand").id] = state.hand
        model.body_quat[body("hand").id] = _about_x(0.4 * state.tilt)
        for finger, side in (("finger_left", -1), ("finger_right", 1)):
            model.body_pos[body(finger).id] = (0, side * (state.grip + 0.009), 0)
        mujoco.mj_kinematics(model, self._data)
        mujoco.mj_comPos(model, self._data)
        mujoco.mj_camlight(model, self._data)
        self._canvas.make_current()
        mujoco.mjv_updateScene(model, self._data, self._options, None, self._camera, mujoco.mjtCatBit.mjCAT_ALL, self._scene)
        mujoco.mjr_render(self._rectangle, self._scene, self._canvas.drawing)
        mujoco.mjr_readPixels(self._pixels, None, self._rectangle, self._canvas.drawing)
        return self._pixels[::-1].copy()  # OpenGL's first row is the lowest

    def _geoms(self, kind: str) -> range:
        first = int(self._model.body(kind).geomadr[0])
        return range(first, first + int(self._model.body(kind).geomnum[0]))

    def close(self) -> None:
        """Frees the graphics memory; calling it again does nothing."""
        self._canvas.close()

    def __enter__(self) -> ClipRenderer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _about_x(angle: float) -> tuple[float, float, float, float]:
    return float(np.cos(angle / 2)), float(np.sin(angle / 2)), 0.0, 0.0
