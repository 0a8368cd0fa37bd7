"""TopicCamera: pictures that another node publishes, of any encoding and quality of service."""

from __future__ import annotations

import threading
import time
from typing import Any

from robot_bridge.cameras.base import CameraError, Frame
from robot_bridge.cameras.lens import Lens

_WAIT_S = 0.5


class TopicCamera:
    """Gives what comes on an Image topic as RGB; the stamps are the sender's, or of the arrival where it sets none. See `Camera`.

    Args:
        topic: absolute name of the Image topic.
    """

    def __init__(self, *, topic: str) -> None:
        self.lens: Lens | None = None
        self._topic = topic
        self._arrived = threading.Condition()
        self._newest: tuple[Any, int] | None = None
        self._node: Any = None
        self._spinning: Any = None

    def open(self) -> str:
        """Subscribes; a publisher may come later."""
        from rclpy.node import Node
        from sensor_msgs.msg import Image

        from robot_bridge.nodes.qos import SENSOR, subscribe
        from robot_bridge.nodes.spin import SpinThread

        self._node = Node("camera_relay", use_global_arguments=False)
        subscribe(self._node, Image, self._topic, self._came, SENSOR)
        self._spinning = SpinThread(self._node)
        self._spinning.__enter__()
        return self._topic

    def grab(self) -> Frame | None:
        """See `Camera.grab`.

        Raises:
            CameraError: an encoding that is not known, or a size that does not fit; lists the encodings.
        """
        from robot_bridge.nodes.messages import MessageError, image_to_rgb
        from robot_bridge.nodes.stamps import to_ns

        with self._arrived:
            self._arrived.wait_for(lambda: self._newest is not None, timeout=_WAIT_S)
            newest, self._newest = self._newest, None
        if newest is None:
            return None
        message, arrival_ns = newest
        try:
            return Frame(pixels=image_to_rgb(message), stamp_ns=to_ns(message.header.stamp) or arrival_ns)
        except MessageError as error:
            raise CameraError(f"{self._topic}: {error}") from error

    def close(self) -> None:
        """See `Camera.close`."""
        node, self._node = self._node, None
        if node is not None:
            self._spinning.__exit__(None, None, None)
            node.destroy_node()

    def _came(self, message: Any) -> None:
        with self._arrived:
            self._newest = message, time.time_ns()
            self._arrived.notify()
