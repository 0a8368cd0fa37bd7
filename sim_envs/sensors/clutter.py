"""What stands still in front of the radar: an arm at rest on a table."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from sim_envs.sensors.surfaces import sample_surface

_CELL = """
<mujoco>
  <worldbody>
    <geom name="table" type="box" size="0.35 0.5 0.02" pos="0.45 0 -0.03"/>
    <geom type="capsule" size="0.07" fromto="0 0 0 0 0 0.33"/>
    <geom type="capsule" size="0.06" fromto="0 0 0.33 0.16 0 0.60"/>
    <geom type="capsule" size="0.05" fromto="0.16 0 0.60 0.45 0 0.48"/>
    <geom type="capsule" size="0.04" fromto="0.45 0 0.48 0.48 0 0.28"/>
  </worldbody>
</mujoco>"""


def cell_scatterers(count: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Points (K, 3) in the arm's base frame, normals (K, 3) and areas (K,)."""
    model = mujoco.MjModel.from_xml_string(_CELL)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    surface = sample_surface(model, count, rng)
    points, normals = surface.placed(data.geom_xpos[None], data.geom_xmat.reshape(1, -1, 3, 3))
    return points[0], normals[0], surface.areas
