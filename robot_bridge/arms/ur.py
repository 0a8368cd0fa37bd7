"""URArm: Universal Robots' e-Series through ur_rtde's servoJ."""

from __future__ import annotations

import contextlib
import time
from math import pi
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from robot_bridge.arms.base import ArmLost, ArmState
from robot_bridge.arms.chain import Link, chain_mjcf
from robot_bridge.control.limits import ArmLimits
from robot_bridge.control.rotation import from_rotation_vector

Model = Literal["ur3e", "ur5e", "ur10e"]

JOINTS = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint")
_WATCHDOG_HZ = 10.0
_STOP_DECELERATION = 10.0  # rad/s^2, ur_rtde's default
# d1, a2, a3, d4, d5, d6 in metres: Universal Robots, "DH parameters for calculations of kinematics and dynamics". Each arm's own
# calibration differs from them by up to a millimetre.
_LENGTHS = {
    "ur3e": (0.15185, -0.24355, -0.2132, 0.13105, 0.08535, 0.0921),
    "ur5e": (0.1625, -0.425, -0.3922, 0.1333, 0.0997, 0.0996),
    "ur10e": (0.1807, -0.6127, -0.57155, 0.17415, 0.11985, 0.11655),
}
# UniversalRobots/Universal_Robots_ROS2_Description, config/MODEL/joint_limits.yaml, from the user manuals 5.8; so are the ranges.
_VELOCITY = {"ur3e": (pi, pi, pi, 2 * pi, 2 * pi, 2 * pi), "ur5e": (pi,) * 6, "ur10e": (2 * pi / 3, 2 * pi / 3, pi, pi, pi, pi)}


def ur_limits(model: Model) -> ArmLimits:
    """Ranges and velocities of the user manuals, which state no acceleration: it is the one that Universal Robots' description of the UR5e
    gives planners, 180 degrees/s^2. Braking takes ur_rtde's own deceleration. Jerk and workspace are ours.
    """
    reach = -sum(_LENGTHS[model][1:3]) + 0.2
    return ArmLimits(
        names=JOINTS,
        position_min=(-2 * pi, -2 * pi, -pi, -2 * pi, -2 * pi, -2 * pi),
        position_max=(2 * pi, 2 * pi, pi, 2 * pi, 2 * pi, 2 * pi),
        velocity=_VELOCITY[model],
        acceleration=(pi,) * 6,
        jerk=(400.0,) * 6,
        stop_acceleration=(_STOP_DECELERATION,) * 6,
        stop_jerk=(2000.0,) * 6,
        max_lead=(1.2,) * 6,
        workspace_min=(-reach, -reach, 0.0),
        workspace_max=(reach, reach, reach + 0.2),
        max_orientation_step=1.0,
        max_force=100.0,
        max_torque=20.0,
    )


def _description(model: Model, limits: ArmLimits) -> str:
    d1, a2, a3, d4, d5, d6 = _LENGTHS[model]
    # The joint before rotates, then the Denavit-Hartenberg row of that joint leads to the next.
    geometry = (
        ((0.0, 0.0, d1), 0.0),
        ((0.0, 0.0, 0.0), pi / 2),
        ((a2, 0.0, 0.0), 0.0),
        ((a3, 0.0, d4), 0.0),
        ((0.0, -d5, 0.0), pi / 2),
        ((0.0, d6, 0.0), -pi / 2),
    )
    links = [
        Link(name=name, xyz=xyz, rpy=(roll, 0.0, 0.0), low=low, high=high)
        for name, (xyz, roll), low, high in zip(JOINTS, geometry, limits.position_min, limits.position_max, strict=True)
    ]
    return chain_mjcf(links, tool_xyz=(0.0, 0.0, 0.0))


class URArm:
    """Streams joint targets by servoJ, with the controller's own look-ahead. It carries no gripper. See `Arm`.

    ur_rtde's watchdog is set to 10 Hz: the controller ends the program, and with it the motion, when this process dies.

    Args:
        host: address of the controller, in remote control.
        model: `ur3e`, `ur5e` or `ur10e`.
        lookahead_s: smooths the targets, 0.03..0.2 s.
        gain: of following the target, 100..2000.

    Raises:
        ValueError: a setting outside its range.
    """

    def __init__(self, *, host: str, model: Model = "ur5e", lookahead_s: float = 0.05, gain: float = 300.0) -> None:
        if model not in get_args(Model):
            raise ValueError(f"model {model!r}, valid: {', '.join(get_args(Model))}")
        if not 0.03 <= lookahead_s <= 0.2:
            raise ValueError(f"lookahead_s {lookahead_s}, valid: 0.03 .. 0.2")
        if not 100 <= gain <= 2000:
            raise ValueError(f"gain {gain}, valid: 100 .. 2000")
        self.limits = ur_limits(model)
        self.joint_names = self.limits.names
        self.description = _description(model, self.limits)
        self._host = host
        self._lookahead_s = lookahead_s
        self._gain = gain
        self._receive: Any = None
        self._control: Any = None

    def connect(self) -> None:
        """Connects, uploads ur_rtde's program and sets the watchdog.

        Raises:
            ArmLost: no answer, or the arm is in a protective or emergency stop, which is cleared on its pendant.
        """
        import rtde_control
        import rtde_receive

        self.close()
        try:
            self._receive = rtde_receive.RTDEReceiveInterface(self._host)
            self._check()
            self._control = rtde_control.RTDEControlInterface(self._host)
            self._control.setWatchdog(_WATCHDOG_HZ)
        except ArmLost:
            self.close()
            raise
        except RuntimeError as error:
            self.close()
            raise ArmLost(f"ur at {self._host}: {error}; is it powered, in remote control, and no other client connected?") from error

    def read(self) -> ArmState:
        """See `Arm.read`."""
        self._check()
        receive = self._receive
        pose = np.array(receive.getActualTCPPose())
        return ArmState(
            stamp_ns=time.time_ns(),
            names=self.joint_names,
            positions=np.array(receive.getActualQ()),
            velocities=np.array(receive.getActualQd()),
            ee_pos=pose[:3],
            ee_quat=from_rotation_vector(pose[3:]),
            wrench=np.array(receive.getActualTCPForce()),
        )

    def command(self, positions: NDArray[np.float64], period_s: float) -> None:
        """See `Arm.command`.

        Raises:
            ArmLost: the arm did not take it.
        """
        control = self._control
        if control is None:
            raise ArmLost(f"ur at {self._host}: not connected")
        # speed and acceleration are not used by servoJ
        if not (control.kickWatchdog() and control.servoJ(positions.tolist(), 0.0, 0.0, period_s, self._lookahead_s, self._gain)):
            raise ArmLost(f"ur at {self._host}: servoJ was not taken; {self._why()}")

    def stop(self) -> None:
        """Ends servoing; the controller brakes."""
        if self._control is not None:
            self._control.servoStop(_STOP_DECELERATION)

    def close(self) -> None:
        """See `Arm.close`."""
        control, self._control = self._control, None
        receive, self._receive = self._receive, None
        with contextlib.suppress(Exception):  # of a connection that is given up
            if control is not None:
                control.servoStop(_STOP_DECELERATION)
                control.stopScript()
                control.disconnect()
        with contextlib.suppress(Exception):
            if receive is not None:
                receive.disconnect()

    def _check(self) -> None:
        if self._receive is None or not self._receive.isConnected():
            raise ArmLost(f"ur at {self._host}: not connected")
        if why := self._why():
            raise ArmLost(f"ur at {self._host}: {why}")

    def _why(self) -> str:
        if self._receive.isEmergencyStopped():
            return "emergency stop; release it on the pendant, then call arm/rearm"
        if self._receive.isProtectiveStopped():
            return "protective stop; clear it on the pendant, then call arm/rearm"
        return ""
