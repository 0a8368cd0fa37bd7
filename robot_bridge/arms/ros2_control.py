"""Ros2ControlArm: an arm whose joints a ros2_control controller moves."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rl_core.errors import ArmstackError
from robot_bridge.arms.base import ArmLost, ArmState
from robot_bridge.control.limits import ArmLimits
from robot_bridge.control.names import JointNameError, order_by_name

Interface = Literal["trajectory", "forward"]

_TOPIC = {"trajectory": "joint_trajectory", "forward": "commands"}
_STALE_S = 0.5
_FIRST_S = 5.0


class Ros2ControlArm:
    """Publishes one point a control period to a controller and reads `joint_states`, joints by name. See `Arm`.

    `trajectory` is a joint_trajectory_controller, `forward` a forward_position_controller; either keeps its last target when this
    process dies. The arm node must be the only publisher on the controller's topic. A gripper, where there is one, is the last of
    the limits' names and a joint of the same controller.

    Args:
        limits: JSON file with the arm's `ArmLimits`.
        controller: name of the controller, e.g. /joint_trajectory_controller.
        interface: `trajectory` or `forward`.
        joint_states: topic of the joint state broadcaster.
        controller_joints: the joints in the controller's order, needed by `forward` whose messages carry no names; empty: that of
            the limits.

    Raises:
        ArmstackError: the limits cannot be read, or a setting is none.
    """

    def __init__(
        self,
        *,
        limits: str,
        controller: str = "/joint_trajectory_controller",
        interface: Interface = "trajectory",
        joint_states: str = "/joint_states",
        controller_joints: Sequence[str] = (),
    ) -> None:
        if interface not in get_args(Interface):
            raise ArmstackError(f"interface {interface!r}, valid: {', '.join(get_args(Interface))}")
        try:
            self.limits = ArmLimits.from_json(Path(limits).read_text(encoding="utf-8"))
        except OSError as error:
            raise ArmstackError(f"limits {limits!r}: {error.strerror}; valid: a JSON file with the arm's limits") from error
        self.joint_names = self.limits.names
        self._controller_joints = tuple(controller_joints) or self.joint_names
        try:
            order_by_name(self._controller_joints, self.joint_names)
        except JointNameError as error:
            raise ArmstackError(f"controller_joints: {error}") from error
        self._order = order_by_name(self.joint_names, self._controller_joints)
        self._command_topic = f"{controller.rstrip('/')}/{_TOPIC[interface]}"
        self._state_topic = joint_states
        self._forward = interface == "forward"
        self._fresh = threading.Condition()
        self._state: tuple[ArmState, float] | None = None
        self._fault: str | None = None
        self._node: Any = None
        self._spinning: Any = None
        self._publisher: Any = None

    def connect(self) -> None:
        """Waits for the first joint states and the controller.

        Raises:
            ArmLost: neither came; what `read` raises.
        """
        if self._node is None:
            self._open()
        with self._fresh:
            self._fresh.wait_for(lambda: self._state is not None or self._fault is not None, timeout=_FIRST_S)
        if self._node.count_subscribers(self._command_topic) == 0:
            raise ArmLost(f"nobody listens on {self._command_topic}; is the controller loaded and active?")
        self.read()

    def read(self) -> ArmState:
        """See `Arm.read`; the stamp is that of the message. The end effector is not measured: it is zero.

        Raises:
            ArmLost: no fresh joint states, a joint is missing, or somebody else publishes on the controller's topic.
        """
        if self._node is None:
            raise ArmLost(f"{self._state_topic}: not connected")
        others = self._node.count_publishers(self._command_topic) - 1
        if others > 0:
            raise ArmLost(f"{self._command_topic} has {others} other publisher(s); the arm node must be the only one")
        with self._fresh:
            newest, fault = self._state, self._fault
        if fault is not None:
            raise ArmLost(fault)
        if newest is None or time.monotonic() - newest[1] > _STALE_S:
            raise ArmLost(f"no joint states on {self._state_topic} for {_STALE_S} s; is the joint state broadcaster active?")
        return newest[0]

    def command(self, positions: NDArray[np.float64], period_s: float) -> None:
        """See `Arm.command`.

        Raises:
            ArmLost: not connected.
        """
        if self._publisher is None:
            raise ArmLost(f"{self._command_topic}: not connected")
        self._publisher.publish(self._message(positions, period_s))

    def stop(self) -> None:
        """A controller has no stop of its own: the target becomes the measured pose."""
        self.command(self.read().positions, 0.3)

    def close(self) -> None:
        """See `Arm.close`."""
        node, self._node, self._publisher, self._state = self._node, None, None, None
        if node is not None:
            self._spinning.__exit__(None, None, None)
            node.destroy_node()

    def _open(self) -> None:
        from rclpy.node import Node
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Float64MultiArray
        from trajectory_msgs.msg import JointTrajectory

        from robot_bridge.nodes.qos import STREAM, advertise, subscribe
        from robot_bridge.nodes.spin import SpinThread

        self._node = Node("arm_driver")
        kind = Float64MultiArray if self._forward else JointTrajectory
        self._publisher = advertise(self._node, kind, self._command_topic, STREAM)
        subscribe(self._node, JointState, self._state_topic, self._measured, STREAM)
        self._spinning = SpinThread(self._node).__enter__()

    def _measured(self, message: Any) -> None:
        from robot_bridge.nodes.messages import MessageError, by_name
        from robot_bridge.nodes.stamps import to_ns

        try:
            positions, velocities = (
                by_name(self.joint_names, message.name, values, what=self._state_topic) for values in (message.position, message.velocity)
            )
        except MessageError as error:
            with self._fresh:
                self._fault = str(error)
                self._fresh.notify_all()
            return
        state = ArmState(
            stamp_ns=to_ns(message.header.stamp),
            names=self.joint_names,
            positions=positions,
            velocities=velocities,
            ee_pos=np.zeros(3),
            ee_quat=np.array([0.0, 0.0, 0.0, 1.0]),
        )
        with self._fresh:
            self._state, self._fault = (state, time.monotonic()), None
            self._fresh.notify_all()

    def _message(self, positions: NDArray[np.float64], period_s: float) -> Any:
        from std_msgs.msg import Float64MultiArray

        from robot_bridge.nodes.messages import trajectory

        ordered = positions[self._order]
        if self._forward:
            return Float64MultiArray(data=ordered.tolist())
        # A stamp of zero: the controller begins at once, whatever its clock says.
        return trajectory(self._controller_joints, ordered[None], np.array([period_s]), stamp_ns=0, source="")
