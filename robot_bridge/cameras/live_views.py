"""LiveViews: takes a view from a running graph: the newest picture of a camera, and the hand's pose while the arm stands still."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import Image

from robot_bridge.cameras.calibration import CalibrationError
from robot_bridge.cameras.views import STILL_S, HandPose, at_rest
from robot_bridge.nodes.messages import image_to_rgb, pose_arrays
from robot_bridge.nodes.qos import SENSOR, STREAM, subscribe

_WAIT_S = 2.0


class LiveViews:
    """Listens on `camera/NAME/image_raw` and `ee_pose`.

    Args:
        node: in the arm's namespace; spun by the caller.
        camera: name of the camera.
    """

    def __init__(self, node: Node, camera: str) -> None:
        self._changed = threading.Condition()
        self._image: tuple[float, Any] | None = None
        self._hands: deque[tuple[float, HandPose]] = deque(maxlen=1000)
        self._topics = {what: node.resolve_topic_name(what) for what in (f"camera/{camera}/image_raw", "ee_pose")}
        image_topic, pose_topic = self._topics.values()
        subscribe(node, Image, image_topic, self._image_came, SENSOR)
        subscribe(node, PoseStamped, pose_topic, self._pose_came, STREAM)

    def take(self) -> tuple[NDArray[np.uint8], HandPose]:
        """A picture that came after this call, once the arm has stood still for a while.

        Raises:
            CalibrationError: no picture or no pose comes, or the arm moves.
        """
        begin = time.monotonic()
        with self._changed:
            there = self._changed.wait_for(lambda: self._rested_since(begin), timeout=_WAIT_S)
            image, hands = self._image, list(self._hands)
        if image is None or image[0] < begin:
            raise CalibrationError(f"no picture on {list(self._topics)[0]} within {_WAIT_S} s; does the camera node run?")
        if not hands or hands[-1][0] < begin:
            raise CalibrationError(f"no pose on {list(self._topics)[1]} within {_WAIT_S} s; does the arm node run?")
        if not there:
            raise CalibrationError(f"the arm moves; valid: a view while it stands still for {STILL_S} s")
        return image_to_rgb(image[1]), hands[-1][1]

    def _rested_since(self, begin: float) -> bool:
        """A picture has come `STILL_S` after `begin`, and the hand is where it was then."""
        if self._image is None or self._image[0] < begin + STILL_S or not self._hands:
            return False
        newest = self._hands[-1][1]
        since = [hand for came, hand in self._hands if came >= self._image[0] - STILL_S]
        return bool(since) and all(at_rest(hand, newest) for hand in since)

    def _image_came(self, message: Image) -> None:
        with self._changed:
            self._image = time.monotonic(), message
            self._changed.notify_all()

    def _pose_came(self, message: PoseStamped) -> None:
        position, quaternion = pose_arrays(message)
        with self._changed:
            self._hands.append((time.monotonic(), HandPose(position=position, quaternion=quaternion)))
            self._changed.notify_all()
