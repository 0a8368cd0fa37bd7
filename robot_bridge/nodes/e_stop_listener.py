"""`/e_stop`, heard on a node, an executor and a thread of its own: nothing that blocks elsewhere delays it."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node
from std_msgs.msg import Bool

from robot_bridge.control.loop import ControlLoop
from robot_bridge.nodes.qos import subscribe_to_any
from robot_bridge.nodes.spin import Failure, SpinThread

TOPIC = "/e_stop"
_NOT_YET_KNOWN = "_NODE_NAME_UNKNOWN_"  # rmw's answer while discovery has found the publisher, but not its node


class EStopListener:
    """Passes every message on `/e_stop` to the control loop. Only `true` stops; `false` is the heartbeat of a button node.

    Args:
        arm_node: the node of the arm; this one is called after it.
        loop: whose arm is stopped.
        failure: told where the thread dies; the arm node then ends, and with it all motion.
    """

    def __init__(self, arm_node: Node, loop: ControlLoop, failure: Failure) -> None:
        self._loop = loop
        self._names: dict[str, str] = {}
        # without the command line's arguments: a launch file's name for the arm node would rename this one too
        self._node = Node(
            f"{arm_node.get_name()}_e_stop", namespace=arm_node.get_namespace(), context=arm_node.context, use_global_arguments=False
        )
        subscribe_to_any(self._node, Bool, TOPIC, self._received)
        self._thread = SpinThread(self._node, failure=failure)
        self._thread.__enter__()

    def _received(self, message: Bool, info: dict[str, Any]) -> None:
        gid = bytes(info["publisher_gid"]["data"]).hex()
        if message.data:
            self._loop.e_stop(True, self._names.get(gid, gid))  # first stop, then ask who it was
        self._loop.e_stop(message.data, self._name(gid))

    def _name(self, gid: str) -> str:
        """Full name of the node that publishes with `gid`; `required_estops` lists such names."""
        if gid not in self._names:
            for publisher in self._node.get_publishers_info_by_topic(TOPIC):
                if publisher.node_name == _NOT_YET_KNOWN:
                    continue
                name = f"{publisher.node_namespace.rstrip('/')}/{publisher.node_name}"
                self._names[bytes(publisher.endpoint_gid).hex()] = name
        return self._names.get(gid, gid)

    def close(self) -> None:
        """Ends thread and node."""
        self._thread.__exit__()
        self._node.destroy_node()
