"""What every camera node publishes: pictures, camera information, the contract of its channel, diagnostics."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import String

from rl_core.camera_calibration import CameraCalibration
from rl_core.camera_channel import channel_to_json
from rl_core.contract import Channel
from robot_bridge.cameras.lens import Lens
from robot_bridge.nodes.messages import diagnostic, rgb_image
from robot_bridge.nodes.qos import LATCHED, SENSOR, STREAM, advertise
from robot_bridge.nodes.stamps import to_time


class CameraPublisher:
    """Publishes the camera `name` of `node` under `camera/NAME/`, and counts.

    Args:
        node: publishes.
        name: of the camera; its channel is `NAME_image`.
        rate_hz: pictures a second, as the contract says.
        max_age_s: an older picture is stale.

    Attributes:
        published: pictures.
        stale: those of them that were stale, or came after the one before had become stale.
    """

    def __init__(self, node: Node, name: str, *, rate_hz: float, max_age_s: float) -> None:
        self.published = self.stale = 0
        self._name = name
        self._rate_hz = rate_hz
        self._max_age_s = max_age_s
        self._frame = "/".join(filter(None, (node.get_namespace().strip("/"), f"camera_{name}")))
        self._lens: Lens | None = None
        self._images = advertise(node, Image, f"camera/{name}/image_raw", SENSOR)
        self._info = advertise(node, CameraInfo, f"camera/{name}/camera_info", SENSOR)
        self._contract = advertise(node, String, f"camera/{name}/contract", LATCHED)
        self._diagnostics = advertise(node, DiagnosticArray, "diagnostics", STREAM)

    def offer(self, height: int, width: int, *, lens: Lens | None = None, calibration: CameraCalibration | None = None) -> None:
        """Says what pictures will come; `lens` goes into their camera information, `calibration` into the contract."""
        self._lens = lens
        channel = Channel(
            name=f"{self._name}_image",
            kind="image",
            shape=(height, width, 3),
            frame=self._frame,
            rate_hz=self._rate_hz,
            encoding="rgb8",
            row_order="top_down",
            max_age_s=self._max_age_s,
            calibration=calibration,
        )
        self._contract.publish(String(data=channel_to_json(channel)))

    def publish(self, pixels: NDArray[np.uint8], stamp_ns: int, *, stale: bool) -> None:
        """Publishes (H, W, 3) RGB pixels, first row on top, and their camera information."""
        height, width, _ = pixels.shape
        self.published += 1
        self.stale += stale
        self._images.publish(rgb_image(pixels, frame=self._frame, stamp_ns=stamp_ns))
        info = CameraInfo(height=height, width=width)
        info.header.stamp = to_time(stamp_ns)
        info.header.frame_id = self._frame
        if self._lens is not None:
            fx, fy, cx, cy = self._lens.matrix
            info.distortion_model = "plumb_bob"
            info.d = list(self._lens.distortion)
            info.k = [fx, 0.0, cx, 0.0, fy, cy, 0.0, 0.0, 1.0]
            info.r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
            info.p = [fx, 0.0, cx, 0.0, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0]
        self._info.publish(info)

    def report(self, values: Mapping[str, Any], *, title: str = "camera", hardware_id: str = "", problem: str = "") -> None:
        """Publishes diagnostics with the counts and `values`; level ERROR where there is a `problem` now."""
        level = DiagnosticStatus.WARN if self.stale else DiagnosticStatus.OK
        counts = {"published": self.published, "stale": self.stale}
        status = diagnostic(
            title,
            {**counts, **values},
            level=DiagnosticStatus.ERROR if problem else level,
            message=problem or f"{self.stale} stale pictures",
        )
        status.hardware_id = hardware_id
        message = DiagnosticArray(status=[status])
        message.header.stamp = to_time(time.time_ns())
        self._diagnostics.publish(message)
