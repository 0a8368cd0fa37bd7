"""What a hierarchical policy acts towards, as the topic `policy/subgoal`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from torch import Tensor

from rl_core.contract import Channel
from rl_core.policy import Policy
from robot_bridge.nodes.messages import pose
from robot_bridge.nodes.qos import STREAM, advertise

TOPIC = "policy/subgoal"
_UNTURNED = np.array([0.0, 0.0, 0.0, 1.0])


def hand_columns(channel: Channel | None) -> list[int]:
    """Where in a subgoal the position of the hand is; empty where it says nothing of that in metres in frame `base`."""
    if channel is None or (channel.unit, channel.frame) != ("m", "base"):
        return []
    if channel.names == ("x", "y", "z"):
        return [0, 1, 2]
    names = [f"eef_{axis}" for axis in "xyz"]
    return [channel.names.index(name) for name in names] if set(names) <= set(channel.names) else []


class SubgoalPublisher:
    """Publishes the hand's part of each subgoal. A policy says by `subgoal_channel` what the numbers of its subgoals are; of any other one,
    and of one whose subgoals are of something else than the hand, there is no topic.

    Args:
        node: the policy node.
        policy: whose subgoals they are.
        frame: of the arm's base.
    """

    def __init__(self, node: Node, policy: Policy, frame: str) -> None:
        self._columns = hand_columns(getattr(policy, "subgoal_channel", None))
        self._publisher = advertise(node, PoseStamped, TOPIC, STREAM) if self._columns else None
        self._frame = frame

    def tell(self, info: Mapping[str, Tensor], stamp_ns: int) -> None:
        """Of one inference, `stamp_ns` the time of its observation. A position has no heading: the quaternion is that of no turn."""
        if self._publisher is not None and "subgoal" in info:
            position = info["subgoal"][0, self._columns].double().numpy()
            self._publisher.publish(pose(position, _UNTURNED, frame=self._frame, stamp_ns=stamp_ns))
