"""RosSender: a `Sender` on `arm/command`, with the arm's state from `joint_states`."""

from __future__ import annotations

import threading
import time
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from rl_core.errors import ArmstackError
from robot_bridge.control.settings import FilterSettings
from robot_bridge.faults.sender import Measured, Sender
from robot_bridge.nodes.arm_offer import ArmOffer
from robot_bridge.nodes.command_messages import command_message
from robot_bridge.nodes.messages import by_name
from robot_bridge.nodes.qos import LATCHED, STREAM, advertise, subscribe
from robot_bridge.nodes.stamps import to_ns

_STEP_S = 0.01


class RosSender:
    """Sends on a thread of its own as long as the process lives.

    Args:
        node: spun by somebody else.
        joint: index of the joint to sweep.

    Attributes:
        offer: of the arm node; there once `wait` returned.
        sender: likewise.
    """

    offer: ArmOffer
    sender: Sender

    def __init__(self, node: Node, *, joint: int = 0) -> None:
        self._joint = joint
        self._offered = threading.Event()
        self._seen = threading.Event()
        self._state: JointState | None = None
        self._publisher = advertise(node, JointTrajectory, "arm/command", STREAM)
        subscribe(node, String, "arm/contract", self._offer_came, LATCHED)
        subscribe(node, JointState, "joint_states", self._state_came, STREAM)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fault-sender", daemon=True)

    def wait(self, timeout_s: float) -> None:
        """Returns once the arm is heard and sending may begin.

        Raises:
            ArmstackError: it is not in time.
        """
        if not (self._offered.wait(timeout_s) and self._seen.wait(timeout_s)):
            raise ArmstackError(f"no arm node was heard for {timeout_s:g} s")
        self.sender = Sender(self.offer.limits, FilterSettings().policy_period_s, joint=self._joint)
        self._thread.start()

    def measured(self) -> Measured:
        """The newest state."""
        state: Any = self._state
        positions = by_name(self.offer.limits.names, state.name, state.position, what="joint_states")
        return Measured(stamp_ns=to_ns(state.header.stamp), positions=positions)

    def close(self) -> None:
        """Ends the thread."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def _offer_came(self, message: String) -> None:
        self.offer = ArmOffer.from_json(message.data)
        self._offered.set()

    def _state_came(self, message: JointState) -> None:
        self._state = message
        self._seen.set()

    def _run(self) -> None:
        while not self._closed.wait(_STEP_S):
            for command in self.sender.step(self.measured(), time.time_ns()):
                self._publisher.publish(command_message(command))
