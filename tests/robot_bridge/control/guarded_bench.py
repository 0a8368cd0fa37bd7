"""The shape of the bench arm, and settings that guard it."""

from __future__ import annotations

from robot_bridge.control.arm_shape import ArmShape
from robot_bridge.control.separation import SeparationSettings
from tests.robot_bridge.control.rig import NAMES

MJCF = """
<mujoco><worldbody><body name="base">
  <body name="upper"><joint name="shoulder" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    <body name="lower" pos="0.5 0 0"><joint name="elbow" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <site name="ee" pos="0.5 0 0"/>
    </body>
  </body>
</body></worldbody></mujoco>"""
SETTINGS = SeparationSettings(limit_m=0.5, error_m=0.1, latency_s=0.1, max_age_s=0.2, restart_delay_s=0.0)


def shape() -> ArmShape:
    return ArmShape(MJCF, NAMES[:2])
