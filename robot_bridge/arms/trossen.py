"""TrossenArm: WidowX AI through trossen_arm."""

from __future__ import annotations

import contextlib
import threading
import time
from math import pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Gripper
from robot_bridge.arms.base import ArmLost, ArmState
from robot_bridge.arms.chain import Link, chain_mjcf
from robot_bridge.control.limits import ArmLimits
from robot_bridge.control.rotation import from_rotation_vector

_STOP_S = 0.3  # goal times above 0.2 s are reached along a quintic, not at once
_CONNECT_S = 5.0
# xyz and axis of each joint in the one before it: the vendor's robot description, wxai_v0 follower.
_GEOMETRY = (
    ((0.0, 0.0, 0.05725), (0.0, 0.0, 1.0)),
    ((0.02, 0.0, 0.04625), (0.0, 1.0, 0.0)),
    ((-0.264, 0.0, 0.0), (0.0, -1.0, 0.0)),
    ((0.245, 0.0, 0.06), (0.0, -1.0, 0.0)),
    ((0.06775, 0.0, 0.0455), (0.0, 0.0, -1.0)),
    ((0.02895, 0.0, -0.0455), (1.0, 0.0, 0.0)),
)


def widowx_limits() -> ArmLimits:
    """Ranges and velocities of the vendor's description and controller; it states no acceleration, jerk and workspace, these are ours."""
    return ArmLimits(
        names=(*(f"joint_{i}" for i in range(6)), "gripper"),
        position_min=(-3.05433, 0.0, 0.0, -1.5708, -1.5708, -pi, 0.0),
        position_max=(3.05433, pi, 2.35619, 1.5708, 1.5708, pi, 0.044),
        velocity=(3.14,) * 6 + (0.5,),
        acceleration=(8.0,) * 6 + (2.0,),
        jerk=(400.0,) * 6 + (100.0,),
        stop_acceleration=(16.0,) * 6 + (4.0,),
        stop_jerk=(2000.0,) * 6 + (400.0,),
        max_lead=(1.2,) * 6 + (0.05,),
        workspace_min=(-0.3, -0.6, 0.0),
        workspace_max=(0.75, 0.6, 0.8),
        max_orientation_step=1.0,
        gripper=Gripper(name="gripper", open=0.044, closed=0.0),
    )


class TrossenArm:
    """Sends joint targets in position mode, each to be reached in one period. See `Arm`.

    The controller has no watchdog on commands: when this process dies the arm keeps its last target, at most one period away.

    Args:
        host: address of the arm's controller.
    """

    def __init__(self, *, host: str) -> None:
        self.limits = widowx_limits()
        self.joint_names = self.limits.names
        self.description = chain_mjcf(
            [
                Link(name=name, xyz=xyz, axis=axis, low=low, high=high)
                for name, (xyz, axis), low, high in zip(
                    self.joint_names, _GEOMETRY, self.limits.position_min, self.limits.position_max, strict=False
                )
            ],
            tool_xyz=(0.156, 0.0, 0.0),
        )
        self._host = host
        self._connecting = threading.Lock()  # an operator's recovery comes on another thread
        self._driver: Any = None

    def connect(self) -> None:
        """Connects and sets position mode; an error of the controller is left standing.

        Raises:
            ArmLost: no answer, an error that an operator has to `recover`, or a controller whose limits are tighter than ours.
        """
        with self._connecting:
            driver = self._configured(clear_error=False)
            try:
                self._check_limits(driver.get_joint_limits())
                driver.set_all_modes(type(driver.get_modes()[0]).position)  # its `Mode`
            except Exception as error:
                driver.cleanup()
                raise ArmLost(f"trossen at {self._host}: {error}") from error
            self._driver = driver

    def recover(self) -> None:
        """Clears the controller's error; for an operator who has looked at the arm. The driver then connects anew.

        Raises:
            ArmLost: no answer.
        """
        with self._connecting:
            self._configured(clear_error=True).cleanup()

    def read(self) -> ArmState:
        """See `Arm.read`."""
        output = self._call("get_robot_output")
        pose = np.array(output.cartesian.positions)
        return ArmState(
            stamp_ns=time.time_ns(),
            names=self.joint_names,
            positions=np.array(output.joint.all.positions),
            velocities=np.array(output.joint.all.velocities),
            ee_pos=pose[:3],
            ee_quat=from_rotation_vector(pose[3:]),
        )

    def command(self, positions: NDArray[np.float64], period_s: float) -> None:
        """See `Arm.command`."""
        self._call("set_all_positions", positions.tolist(), period_s, False)

    def stop(self) -> None:
        """The controller has no stop of its own: the goal becomes the measured pose."""
        self._call("set_all_positions", list(self._call("get_all_positions")), _STOP_S, False)

    def close(self) -> None:
        """See `Arm.close`."""
        driver, self._driver = self._driver, None
        if driver is not None:
            with contextlib.suppress(Exception):  # of a connection that is given up
                driver.cleanup()

    def _configured(self, *, clear_error: bool) -> Any:
        import trossen_arm

        self.close()
        driver = trossen_arm.TrossenArmDriver()
        hand = trossen_arm.StandardEndEffector.wxai_v0_follower
        try:
            driver.configure(trossen_arm.Model.wxai_v0, hand, self._host, clear_error, timeout=_CONNECT_S)
        except Exception as error:  # the library has two families of errors of its own
            raise ArmLost(
                f"trossen at {self._host}: {error}; is it powered and on this network? An error of it: arm/recover, then arm/rearm"
            ) from error
        return driver

    def _call(self, name: str, *arguments: Any) -> Any:
        driver = self._driver
        if driver is None:
            raise ArmLost(f"trossen at {self._host}: not connected")
        try:
            return getattr(driver, name)(*arguments)
        except Exception as error:
            raise ArmLost(f"trossen at {self._host}: {name}: {error}") from error

    def _check_limits(self, found: Any) -> None:
        """The vendor's limits are adjustable: an arm set tighter would refuse half way what the filter lets through."""
        for i, name in enumerate(self.joint_names):
            ours = (-self.limits.position_min[i], self.limits.position_max[i], self.limits.velocity[i])
            theirs = (-found[i].position_min, found[i].position_max, found[i].velocity_max)
            if any(a > b + 1e-3 for a, b in zip(ours, theirs, strict=True)):
                raise ArmLost(
                    f"{name} is set to {found[i].position_min:g}..{found[i].position_max:g}, at most "
                    f"{found[i].velocity_max:g}/s; reset its joint limits, or tighten the arm node's"
                )
