"""The workbench: one scene for many tasks. A block at place A, a can at place B, a tray on either side, a button and a drawer.

All that stands still hangs on mocap bodies, which a reset can move and a snapshot holds. The button's cap and the drawer slide on them;
both stay where they were pushed or pulled to. Left is +y, far is +x.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco

from sim_envs.arm.scene import TABLE_TOP
from sim_envs.arm.tasks.base import add_object

PLACES = {"block": (0.39, 0.03), "can": (0.51, -0.03)}
"""Middles of the places A (near) and B (far), where the block and the can start, metres; about equally far from either tray."""
GAP = 0.07
"""Least distance in x at the start: a hand around one must not touch the other, metres."""
OBJECT_HEIGHT = {"block": 0.02, "can": 0.03}
"""Half height of each object, metres."""
FIXTURES = {
    "left_tray": (0.50, 0.31, TABLE_TOP),
    "right_tray": (0.50, -0.31, TABLE_TOP),
    "button": (0.42, -0.15, TABLE_TOP + 0.04),
    "drawer": (0.71, 0.0, -0.03),
}
"""What stands on the table: a tray's floor, the top of the button before it is pressed, where the closed drawer's handle is held."""

TRAY_HALF = 0.07
WALL, WALL_HEIGHT = 0.004, 0.03
PRESSED = 0.010
"""The cap is this far down when the button is pressed, metres."""
OPENED = 0.09
"""The drawer is this far out when it is open, metres."""

_BLOCK, _CAN = (0.75, 0.12, 0.1, 1), (0.1, 0.45, 0.8, 1)
_YELLOW, _PURPLE, _GREEN = (0.85, 0.7, 0.2, 1), (0.5, 0.3, 0.6, 1), (0.1, 0.6, 0.25, 1)
_WOOD, _DARK = (0.55, 0.38, 0.22, 1), (0.2, 0.2, 0.22, 1)
_BOX, _CYLINDER = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CYLINDER


def build_workbench(spec: mujoco.MjSpec) -> None:
    """Adds the whole scene."""
    add_object(spec, "block", _BOX, (0.02, 0.02, OBJECT_HEIGHT["block"]), _BLOCK, density=500.0)
    add_object(spec, "can", _CYLINDER, (0.02, OBJECT_HEIGHT["can"], 0.0), _CAN, density=500.0)
    for name, rgba in (("left_tray", _YELLOW), ("right_tray", _PURPLE)):
        _add_tray(_fixture(spec, name), rgba)
    _add_button(spec)
    _add_drawer(spec)


def _fixture(spec: mujoco.MjSpec, name: str) -> mujoco.MjsBody:
    return spec.worldbody.add_body(name=name, mocap=True, pos=FIXTURES[name.removesuffix("_base")])


def _box(body: mujoco.MjsBody, size: Sequence[float], pos: Sequence[float], rgba: Sequence[float]) -> None:
    body.add_geom(type=_BOX, size=tuple(size), pos=tuple(pos), rgba=tuple(rgba))


def _add_tray(body: mujoco.MjsBody, rgba: Sequence[float]) -> None:
    _box(body, (TRAY_HALF, TRAY_HALF, 0.001), (0, 0, 0.001), rgba)
    half = TRAY_HALF + WALL
    for x, y, size in ((half, 0, (WALL, half + WALL)), (-half, 0, (WALL, half + WALL)), (0, half, (half, WALL)), (0, -half, (half, WALL))):
        _box(body, (*size, WALL_HEIGHT / 2), (x, y, WALL_HEIGHT / 2), rgba)


def _add_button(spec: mujoco.MjSpec) -> None:
    """A cap 2 cm over its base; dry friction keeps it where it was pushed to, without weight, under which MuJoCo's friction creeps."""
    base = _fixture(spec, "button_base")
    _box(base, (0.028, 0.028, 0.01), (0, 0, -0.03), _DARK)
    cap = base.add_body(name="button", gravcomp=1.0)
    cap.add_joint(name="button", type=mujoco.mjtJoint.mjJNT_SLIDE, axis=(0, 0, -1), range=(0, 0.016), damping=5.0, frictionloss=3.0)
    cap.add_geom(type=_CYLINDER, size=(0.022, 0.01, 0), pos=(0, 0, -0.01), rgba=_GREEN, density=1000.0)
    spec.add_exclude(bodyname1="button_base", bodyname2="button")


def _add_drawer(spec: mujoco.MjSpec) -> None:
    """A case open to the robot, and a drawer whose handle is a post that is gripped from above; its origin is where the post is held."""
    case = _fixture(spec, "drawer_base")
    for y in (-0.085, 0.085):
        _box(case, (0.08, 0.005, 0.035), (0.12, y, -0.047), _WOOD)
    _box(case, (0.005, 0.08, 0.035), (0.195, 0, -0.047), _WOOD)
    _box(case, (0.08, 0.09, 0.003), (0.12, 0, -0.009), _WOOD)
    drawer = case.add_body(name="drawer")
    drawer.add_joint(name="drawer", type=mujoco.mjtJoint.mjJNT_SLIDE, axis=(-1, 0, 0), range=(0, 0.13), damping=3.0, frictionloss=1.0)
    _box(drawer, (0.006, 0.012, 0.035), (0, 0, -0.015), _DARK)
    _box(drawer, (0.02, 0.012, 0.006), (0.015, 0, -0.048), _DARK)
    _box(drawer, (0.004, 0.078, 0.03), (0.036, 0, -0.044), _WOOD)
    _box(drawer, (0.07, 0.075, 0.002), (0.11, 0, -0.072), _WOOD)
    spec.add_exclude(bodyname1="drawer_base", bodyname2="drawer")
