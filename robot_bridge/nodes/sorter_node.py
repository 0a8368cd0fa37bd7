"""The sorter node: says which bin the part in front of the arm belongs in, by a recogniser's results on an episode's first frames.

It hears `aux/METHOD/result` and `episode`, and publishes `sorting/bin/pose` over and over while there is a decision, and each decision once
on `sorting/decision` (JSON: episode, class, bin, score). It publishes no pose before, nor for a class without a bin: a policy that asks
for the bin then has nothing to act on, and the arm stays.
"""

from __future__ import annotations

import json
import math
import time
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from std_msgs.msg import String

from rl_core.errors import ArmstackError
from robot_bridge.auxiliary.first_frames import FirstFrames
from robot_bridge.auxiliary.registry import find_method
from robot_bridge.nodes.messages import MessageError, began, pose
from robot_bridge.nodes.qos import EVENTS, STREAM, advertise, subscribe
from robot_bridge.nodes.spin import NodeError, run
from robot_bridge.nodes.stamps import to_ns
from robot_bridge.sorting import Bin, read_bins

_PERIOD_S = 0.05
_UNTURNED = np.array([0.0, 0.0, 0.0, 1.0])


class SorterNode(Node):
    """Parameters: `method`, the recogniser's name in the registry or `module:ROW`; `bins`, the file that says what belongs where;
    `first_frames`, so many of an episode's first frames decide.

    Args:
        options: further arguments of `rclpy.node.Node`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("sorter", **options)
        method = str(self.declare_parameter("method", "").value)
        file = str(self.declare_parameter("bins", "").value)
        frames = int(self.declare_parameter("first_frames", 5).value or 0)
        if frames < 1:
            raise NodeError(f"parameter first_frames: {frames}, valid: 1 or more")
        try:
            self._bins = read_bins(file)
            topic = f"{find_method(method).topic}/result"
        except ArmstackError as error:
            raise NodeError(str(error)) from error
        self._first = FirstFrames(frames)
        self._episode = -1
        self._chosen: Bin | None = None
        self._clock_ns: int | None = None
        self._frame = "/".join(filter(None, (self.get_namespace().strip("/"), "base")))
        self._poses = advertise(self, PoseStamped, "sorting/bin/pose", STREAM)
        self._decisions = advertise(self, String, "sorting/decision", EVENTS)
        subscribe(self, String, topic, self._result_came, STREAM)
        subscribe(self, String, "episode", self._episode_came, EVENTS)
        subscribe(self, ClockMessage, "/clock", self._clock_came, STREAM)
        self.create_timer(_PERIOD_S, self._say_bin)

    def _clock_came(self, message: ClockMessage) -> None:
        self._clock_ns = to_ns(message.clock)

    def _episode_came(self, message: String) -> None:
        try:
            index, stamp_ns = began(message.data)
        except MessageError as error:
            self.get_logger().error(str(error), throttle_duration_sec=2.0)
            return
        if self._first.begin(index, stamp_ns):
            self._episode, self._chosen = index, None

    def _result_came(self, message: String) -> None:
        if not self._first.missing:
            return  # decided
        try:
            told = json.loads(message.data)
            scores = {name: float(score) for name, score in told["scores"].items()}
            if not scores or not all(map(math.isfinite, scores.values())):
                raise ValueError(f"scores {scores}, valid: a finite number for each class")
            self._first.add(int(told["stamp"]), scores)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self.get_logger().error(f"a result cannot be used: {error}", throttle_duration_sec=2.0)
            return
        if not self._first.missing:
            self._decide()

    def _decide(self) -> None:
        scores = self._first.mean
        name = max(scores, key=lambda each: scores[each])
        self._chosen = next((each for each in self._bins if name in each.classes), None)
        decision = {"episode": self._episode, "class": name, "bin": self._chosen.name if self._chosen else None, "score": scores[name]}
        self._decisions.publish(String(data=json.dumps(decision)))
        if self._chosen is None:
            self.get_logger().warning(f"{name!r} belongs in no bin; the arm is not told any")

    def _say_bin(self) -> None:
        if self._chosen is not None:
            now_ns = self._clock_ns if self._clock_ns is not None else time.time_ns()
            self._poses.publish(pose(np.array(self._chosen.position), _UNTURNED, frame=self._frame, stamp_ns=now_ns))


def main() -> int:
    """Entry point of `sorter_node`."""
    return run(SorterNode)


if __name__ == "__main__":
    raise SystemExit(main())
