"""Rope: 15 beads in a plane and a poker, in MuJoCo. What is pushed moves; what is left alone stays.

The rope is a chain of 14 links of 3 cm with hinges at its beads. It lies in a plane, so the table is no contact: each link feels a drag
that grows with its speed (MuJoCo's viscosity), which keeps the rope in its shape as friction would, and costs nothing.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np
from numpy.typing import NDArray

BEADS = 15
LINK = 0.03
RADIUS = 0.01
"""Of beads, links' ends and the poker, metres."""
LOW, HIGH = np.array([0.22, -0.27]), np.array([0.72, 0.27])
"""Corners of the field that is poked in, metres in frame base."""
POKE = 0.08
"""Length of a poke, metres."""
_SPEED = 0.25
"""Of the poker, metres a second."""
_SETTLE_S = 0.1
_AWAY = (0.0, 0.0, 1.0)
_TIMESTEP = 0.004


class Rope:
    """One rope. Straight along x when made."""

    def __init__(self) -> None:
        self.model = mujoco.MjModel.from_xml_string(_xml())
        self.data = mujoco.MjData(self.model)
        self._beads = [self.model.site(f"bead{i}").id for i in range(BEADS)]
        self.straighten()

    def straighten(self) -> None:
        """Puts the rope where it begins: straight along x in the middle of the field."""
        mujoco.mj_resetData(self.model, self.data)
        self._lift()

    @property
    def beads(self) -> NDArray[np.float64]:
        """(15, 2) metres."""
        return self.data.site_xpos[self._beads, :2].copy()

    def poke(self, start: NDArray[np.float64], direction: float) -> None:
        """Lowers the poker, moves it by 8 cm, within the field, and lifts it.

        Args:
            start: (2,) metres. Where a bead lies there, the poker goes down as far behind as it must.
            direction: rad from +x towards +y.
        """
        along = np.array([math.cos(direction), math.sin(direction)])
        end = np.clip(start + POKE * along, LOW, HIGH)
        begin = self._free(np.clip(start, LOW, HIGH), along)
        steps = max(1, round(float(np.linalg.norm(end - begin)) / (_SPEED * _TIMESTEP)))
        for step in range(steps + 1):
            self.data.mocap_pos[0, :2] = begin + (end - begin) * (step / steps)
            self.data.mocap_pos[0, 2] = 0.0
            mujoco.mj_step(self.model, self.data)
        self._lift()
        mujoco.mj_step(self.model, self.data, nstep=round(_SETTLE_S / _TIMESTEP))
        self._lift()

    def snapshot(self) -> NDArray[np.float64]:
        """All that a later poke depends on: the generalised positions; between pokes the rope is at rest."""
        return self.data.qpos.copy()

    def restore(self, snapshot: NDArray[np.float64]) -> None:
        """Back to a snapshot; what follows is equal to the bit."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = snapshot
        self._lift()

    def _lift(self) -> None:
        """Takes the poker away and stops what still creeps, so that a shape is all of the state."""
        shape = self.data.qpos.copy()
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = shape
        self.data.mocap_pos[0] = _AWAY
        mujoco.mj_forward(self.model, self.data)

    def _free(self, start: NDArray[np.float64], along: NDArray[np.float64]) -> NDArray[np.float64]:
        """The first point behind `start`, 2 mm after 2 mm, where the poker touches no link."""
        beads = self.beads
        ends = np.concatenate([beads[:-1], (beads[:-1] + beads[1:]) / 2, beads[-1:]])
        for back in np.arange(0.0, POKE, 0.002):
            if np.linalg.norm(ends - (start - back * along), axis=1).min() > 2.2 * RADIUS:
                return start - back * along
        return start


def _xml() -> str:
    """The chain: link i goes from bead i to bead i + 1; the last bead is the last link's end."""
    links = ""
    for i in range(BEADS - 1):
        place = f'pos="{LOW[0] + 0.04} 0 0"' if i == 0 else f'pos="{LINK} 0 0"'
        joints = (
            '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint axis="0 0 1"/>'
            if i == 0
            else '<joint axis="0 0 1" range="-60 60" damping="0.0005"/>'
        )
        links += (
            f'<body {place}>{joints}<site name="bead{i}"/>'
            f'<geom type="capsule" fromto="0 0 0 {LINK} 0 0" size="{RADIUS}" density="1000" contype="2" conaffinity="3"/>'
        )
    return f"""
    <mujoco>
      <compiler angle="degree" autolimits="true"/>
      <option timestep="{_TIMESTEP}" gravity="0 0 0" viscosity="8" integrator="implicitfast" cone="pyramidal"/>
      <worldbody>
        <body name="poker" mocap="true" pos="0 0 1">
          <geom type="cylinder" size="{RADIUS} 0.02" contype="1" conaffinity="2" condim="1"/>
        </body>
        {links}<site name="bead{BEADS - 1}" pos="{LINK} 0 0"/>{"</body>" * (BEADS - 1)}
      </worldbody>
    </mujoco>"""
