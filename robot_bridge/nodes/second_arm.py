"""A second arm node under the same names: one policy would move both arms, so neither may move."""

from __future__ import annotations

import errno
import socket
import time

from rclpy.node import Node

from robot_bridge.nodes.spin import NodeError

ARM_TOPICS = ("arm/contract", "arm/applied")
DISCOVERY_S = 1.0
_LOOK_S = 0.05
_LOOKS = 100
_RMW_UNKNOWN = "_NODE_NAME_UNKNOWN_"  # rmw's answer while discovery has found the publisher, but not its node
_UNKNOWN = "a node of a name not known yet"


def what_to_do(node: Node) -> str:
    """Which domain and namespace are meant, and how two arms are told apart."""
    domain, namespace = node.context.get_domain_id(), node.get_namespace()
    return (
        f"(ROS_DOMAIN_ID {domain}, namespace {namespace}). One policy would move both arms: give each arm its own namespace "
        "(namespace:=left) or ROS_DOMAIN_ID, or end one; an arm node that was killed stays listed for up to 20 s at those that knew it"
    )


def publishers(node: Node, topic: str) -> list[str]:
    """Full names of the nodes that publish on `topic`, this one included."""
    infos = node.get_publishers_info_by_topic(node.resolve_topic_name(topic))
    return sorted(_UNKNOWN if info.node_name == _RMW_UNKNOWN else f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in infos)


def refuse_second_arm(node: Node, *, since: float) -> socket.socket:
    """Waits until `DISCOVERY_S` after `since` (monotonic, when the node was made); called before the node's own publishers are.

    Discovery may take longer than that on a busy machine, so arm nodes of one machine are also told apart by a socket's name, which
    the kernel gives to one of them and takes back when it ends, however it ends.

    Returns:
        What keeps the names; to be closed with the node.

    Raises:
        NodeError: another node publishes what only an arm node does, or has these names on this machine.
    """
    _refuse_discovered(node, since)
    names = socket.socket(socket.AF_UNIX)
    try:
        names.bind(f"\0armstack-arm-{node.context.get_domain_id()}{node.get_namespace()}")
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            names.close()
            raise NodeError(f"another arm node of these names runs on this machine {what_to_do(node)}") from error
    return names


def _refuse_discovered(node: Node, since: float) -> None:
    while True:
        over = time.monotonic() - since >= DISCOVERY_S
        for topic in ARM_TOPICS:
            others = publishers(node, topic)
            if others and (over or _UNKNOWN not in others):
                name = node.resolve_topic_name(topic)
                raise NodeError(f"another arm node, {', '.join(others)}, already publishes {name} {what_to_do(node)}")
        if over:
            return
        time.sleep(_LOOK_S)


def second_arm(node: Node) -> str:
    """Why there is more than one arm under the names of this arm node, which publishes once on each; empty where it is alone."""
    for topic in ARM_TOPICS:
        name = node.resolve_topic_name(topic)
        if node.count_publishers(name) > 1:
            others = publishers(node, topic)
            own = node.get_fully_qualified_name()
            if own in others:
                others.remove(own)
            return f"another arm node, {', '.join(others)}, publishes {name} {what_to_do(node)}"
    return ""


def refuse_two_arms(node: Node) -> None:
    """For a sender of commands.

    Raises:
        NodeError: two arms would follow it.
    """
    for topic in ("arm/contract", "arm/status"):
        name = node.resolve_topic_name(topic)
        if node.count_publishers(name) > 1:
            raise NodeError(f"more than one arm: {', '.join(publishers(node, topic))} publish {name} {what_to_do(node)}")


def own_gid(node: Node, topic: str) -> str:
    """Identity of the node's own publisher on `topic`, hex, by which the arm node tells senders of commands apart.

    Raises:
        NodeError: it does not appear in the graph.
    """
    name = node.resolve_topic_name(topic)
    for _ in range(_LOOKS):
        for publisher in node.get_publishers_info_by_topic(name):
            if (publisher.node_name, publisher.node_namespace) == (node.get_name(), node.get_namespace()):
                return bytes(publisher.endpoint_gid).hex()
        time.sleep(_LOOK_S)  # the graph does not list our own publisher yet
    raise NodeError(f"this node's own publisher on {name} does not appear in the ROS graph; check ROS_DOMAIN_ID and the network")
