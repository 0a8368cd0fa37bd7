"""A person made of capsules in MuJoCo, posed through joint angles; z up, facing +x, left is +y."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

KEYPOINTS = (
    "head", "neck", "left_shoulder", "left_elbow", "left_wrist", "right_shoulder", "right_elbow", "right_wrist",
    "left_hip", "left_knee", "left_ankle", "right_hip", "right_knee", "right_ankle",
)  # fmt: skip
PELVIS_M, HEIGHT_M = 0.92, 1.74
"""Of a person of scale 1: height of the pelvis when standing, and of the crown."""

_ARM = """
<body name="{side}_upper_arm" pos="0 {y} 0.50">
  <joint name="{side}_shoulder_roll" axis="{out} 0 0"/><joint name="{side}_shoulder_pitch" axis="0 -1 0"/>
  <site name="{side}_shoulder"/><geom type="capsule" size="0.045" fromto="0 0 0 0 0 -0.29"/>
  <body name="{side}_forearm" pos="0 0 -0.29">
    <joint name="{side}_elbow" axis="0 -1 0"/>
    <site name="{side}_elbow"/><geom type="capsule" size="0.038" fromto="0 0 0 0 0 -0.30"/>
    <site name="{side}_wrist" pos="0 0 -0.26"/>
  </body>
</body>"""
_LEG = """
<body name="{side}_thigh" pos="0 {y} 0">
  <joint name="{side}_hip_roll" axis="{out} 0 0"/><joint name="{side}_hip_pitch" axis="0 -1 0"/>
  <site name="{side}_hip"/><geom type="capsule" size="0.070" fromto="0 0 0 0 0 -0.43"/>
  <body name="{side}_shin" pos="0 0 -0.43">
    <joint name="{side}_knee" axis="0 1 0"/>
    <site name="{side}_knee"/><geom type="capsule" size="0.050" fromto="0 0 0 0 0 -0.42"/>
    <site name="{side}_ankle" pos="0 0 -0.42"/><geom type="capsule" size="0.040" fromto="-0.04 0 -0.45 0.14 0 -0.45"/>
  </body>
</body>"""
_PERSON = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="pelvis">
      <freejoint name="root"/>
      <geom type="capsule" size="0.11" fromto="0 -0.07 0 0 0.07 0"/>
      {left_leg}{right_leg}
      <body name="torso" pos="0 0 0">
        <joint name="lean" axis="0 1 0"/>
        <geom type="capsule" size="0.14" fromto="0 0 0.14 0 0 0.40"/>
        <site name="neck" pos="0 0 0.54"/>
        <site name="head" pos="0 0 0.71"/><geom type="sphere" size="0.11" pos="0 0 0.71"/>
        {left_arm}{right_arm}
      </body>
    </body>
  </worldbody>
</mujoco>"""


@dataclass(frozen=True, kw_only=True)
class Build:
    """How somebody is built: `height` and `girth` relative to the mean person, 1."""

    height: float = 1.0
    girth: float = 1.0


class Humanoid:
    """The model of one person.

    Args:
        build: height scales every length, girth every radius.
    """

    def __init__(self, build: Build = Build()) -> None:
        parts = {
            f"{side}_{part}": text.format(side=side, y=sign * y, out=sign)
            for part, text, y in (("arm", _ARM, 0.19), ("leg", _LEG, 0.10))
            for side, sign in (("left", 1), ("right", -1))
        }
        spec = mujoco.MjSpec.from_string(_PERSON.format(**parts))
        for geom in spec.geoms:
            geom.fromto = np.array(geom.fromto) * build.height  # NaN where a geom has none
            geom.pos = np.array(geom.pos) * build.height
            geom.size = [geom.size[0] * build.girth, *geom.size[1:]]
        for placed in (*spec.bodies[1:], *spec.sites):
            placed.pos = np.array(placed.pos) * build.height
        self.build = build
        self.model = spec.compile()
        self._data = mujoco.MjData(self.model)
        self._sites = [self.model.site(name).id for name in KEYPOINTS]

    def poses(
        self, position: NDArray[np.float64], quaternion: NDArray[np.float64], angles: Mapping[str, NDArray[np.float64]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Forward kinematics of T poses.

        Args:
            position: (T, 3) of the pelvis, metres.
            quaternion: (T, 4) of the pelvis, w first as in MuJoCo.
            angles: joint -> (T,) radians; joints not named are straight.

        Returns:
            Keypoints (T, 14, 3), and the geoms' positions (T, G, 3) and rotations (T, G, 3, 3).

        Raises:
            KeyError: a joint that there is none of; MuJoCo lists those there are.
        """
        qpos = np.zeros((len(position), self.model.nq))
        qpos[:, :3], qpos[:, 3:7] = position, quaternion
        for name, values in angles.items():
            qpos[:, self.model.joint(name).qposadr[0]] = values
        keypoints, places, turns = [], [], []
        for row in qpos:
            self._data.qpos[:] = row
            mujoco.mj_kinematics(self.model, self._data)
            keypoints.append(self._data.site_xpos[self._sites])
            places.append(self._data.geom_xpos.copy())
            turns.append(self._data.geom_xmat.reshape(-1, 3, 3).copy())
        return np.stack(keypoints), np.stack(places), np.stack(turns)
