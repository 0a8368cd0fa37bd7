"""An auxiliary node in this process, and a camera by hand in front of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.parameter import Parameter
from sensor_msgs.msg import Image
from std_msgs.msg import String

from rl_core.camera_channel import channel_to_json
from robot_bridge.auxiliary.bundles import image_channel
from robot_bridge.nodes.auxiliary_node import AuxiliaryNode
from robot_bridge.nodes.messages import rgb_image
from robot_bridge.nodes.qos import LATCHED, SENSOR, advertise
from tests.robot_bridge.auxiliary.fakes import HERE, SIDE
from tests.ros_graph import Collected, Graph, spun

METHOD = f"{HERE}:BRIGHTNESS"


@contextmanager
def auxiliary_node(bundle: Path, **parameters: Any) -> Iterator[AuxiliaryNode]:
    values = {"method": METHOD, "bundle": str(bundle), **parameters}
    node = AuxiliaryNode(parameter_overrides=[Parameter(name, value=value) for name, value in values.items()])
    with spun(node):
        yield node


def gray(level: int, side: int = SIDE) -> NDArray[np.uint8]:
    return np.full((side, side, 3), level, np.uint8)


class Camera:
    """Publishes pictures by hand, and says first what they will be."""

    def __init__(self, graph: Graph, side: int = SIDE) -> None:
        self._images = advertise(graph.probe, Image, "camera/front/image_raw", SENSOR)
        self._contract = advertise(graph.probe, String, "camera/front/contract", LATCHED)
        self.offer(side)

    def offer(self, side: int) -> None:
        """Says of what size pictures will be."""
        self._contract.publish(String(data=channel_to_json(image_channel((side, side, 3)))))

    def show(self, frame: NDArray[np.uint8], *, age_s: float = 0.0) -> int:
        """Publishes one; gives its stamp."""
        stamp_ns = time.time_ns() - int(age_s * 1e9)
        self._images.publish(rgb_image(frame, frame="camera_front", stamp_ns=stamp_ns))
        return stamp_ns


def until(
    condition: Callable[[], object], again: Callable[[], object] = lambda: None, *, every_s: float = 0.02, timeout_s: float = 15
) -> None:
    """Does `again` until `condition()` holds."""
    deadline = time.monotonic() + 15.0
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        again()
        time.sleep(every_s)


def ready(node: AuxiliaryNode) -> None:
    """Returns once frames are judged."""

    def warm() -> bool:
        node.failure.raise_reported()
        return node._worker is not None and node._worker._warm and node.count_publishers("camera/front/image_raw") > 0

    until(warm)


def show_until_judged(camera: Camera, results: Collected, frame: NDArray[np.uint8]) -> dict[str, Any]:
    """The result of a picture, sent again while it is lost on its way (best effort, before the endpoints met)."""
    stamps: list[int] = []
    for _ in range(50):
        stamps.append(camera.show(frame))
        try:
            return json.loads(results.wait(lambda m: json.loads(m.data)["stamp"] in stamps, timeout_s=0.2).data)
        except AssertionError:
            continue
    raise AssertionError("no result")
