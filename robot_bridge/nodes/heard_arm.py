"""What a node beside an arm hears of it: its contract, where its joints are, and the clock of its stamps."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from rl_core.errors import ArmstackError
from robot_bridge.control.arm_shape import ArmShape
from robot_bridge.nodes.arm_offer import ArmOffer
from robot_bridge.nodes.messages import MessageError, by_name
from robot_bridge.nodes.qos import LATCHED, STREAM, subscribe
from robot_bridge.nodes.spin import Failure, NodeError
from robot_bridge.nodes.stamps import to_ns

Array = NDArray[np.float64]


class HeardArm:
    """Subscriptions to `arm/contract`, `joint_states` and `/clock`. An arm whose contract cannot be used ends the node.

    Args:
        node: the node, whose frame of the arm's base is `frame`.
        failure: told why the node cannot go on.
        met: called with every contract and the arm's shape.
        moved: called with positions and velocities (J,), rad and rad/s, of the arm's joints in the order of its limits, and their stamp.

    Attributes:
        frame: `base`, with the node's namespace.
        shape: of the newest contract; None before the first.
        positions: (J,) rad, the newest; None before the first.
    """

    def __init__(
        self,
        node: Node,
        failure: Failure,
        *,
        met: Callable[[ArmOffer, ArmShape], None] = lambda offer, shape: None,
        moved: Callable[[Array, Array, int], None] = lambda positions, velocities, stamp_ns: None,
    ) -> None:
        prefix = node.get_namespace().strip("/")
        self.frame = f"{prefix}/base" if prefix else "base"
        self.shape: ArmShape | None = None
        self.positions: Array | None = None
        self._node, self._failure, self._met, self._moved = node, failure, met, moved
        self._names: tuple[str, ...] = ()
        self._clock_ns: int | None = None
        subscribe(node, ClockMessage, "/clock", self._clock_came, STREAM)
        subscribe(node, String, "arm/contract", self._contract_came, LATCHED)
        subscribe(node, JointState, "joint_states", self._joints_came, STREAM)

    def now_ns(self) -> int:
        """Now, on the clock of stamps."""
        return self._clock_ns if self._clock_ns is not None else time.time_ns()

    def stamp_of(self, sent_ns: int) -> int:
        """When a message without a stamp was sent, on the clock of stamps, from the wall time `sent_ns` that came with it."""
        return self.now_ns() - (time.time_ns() - sent_ns)

    def _clock_came(self, message: ClockMessage) -> None:
        self._clock_ns = to_ns(message.clock)

    def _contract_came(self, message: String) -> None:
        try:
            offer = ArmOffer.from_json(message.data)
            names = offer.limits.names[: offer.limits.arm_joints]
            shape = ArmShape(offer.ik_model, names, tool=offer.tool_frame)
        except (ArmstackError, ValueError, KeyError) as error:
            self._failure.report(NodeError(f"this arm cannot be used: {error}"))
            return
        self._names, self.shape, self.positions = names, shape, None
        self._met(offer, shape)

    def _joints_came(self, message: JointState) -> None:
        if self.shape is None:
            return
        try:
            positions, velocities = (
                by_name(self._names, message.name, values, what="joint_states") for values in (message.position, message.velocity)
            )
        except MessageError as error:
            self._node.get_logger().error(f"joint_states cannot be used: {error}", throttle_duration_sec=2.0)
            return
        self.positions = positions
        self._moved(positions, velocities, to_ns(message.header.stamp))
