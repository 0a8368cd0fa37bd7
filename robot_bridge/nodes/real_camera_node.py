"""A camera: publishes what a source (v4l2, realsense, topic, file) gives, with its calibration, and opens it anew when it freezes.

The camera is read on a thread of its own, which may hang; nothing waits for it. A picture is published once: what a frozen camera
repeats is not, so its stamp grows old and whoever acts on it stops. Where it was not yet seen at all, a camera that cannot be opened
ends the node with the list of those that are there.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node

from rl_core.camera_calibration import CameraCalibration
from rl_core.errors import ArmstackError
from robot_bridge.cameras.base import Camera, CameraError, Frame
from robot_bridge.cameras.calibration import StoredCalibration
from robot_bridge.cameras.grabbing import Grabber
from robot_bridge.cameras.lens import Lens
from robot_bridge.cameras.registry import CAMERAS, find_camera, make_camera, make_settings, require_library, require_opencv
from robot_bridge.nodes.camera_publisher import CameraPublisher
from robot_bridge.nodes.spin import Failure, NodeError, run

_CHECK_S = 0.05
_FROZEN_S = 1.0
_MAX_AGE_S, _PERIODS = 0.1, 2.5


class RealCameraNode(Node):
    """Parameters: `source` (v4l2, realsense, topic, file) and its settings, `camera` (its name), `width`, `height` of the pictures to
    publish (0: as they come), `rate_hz`, `max_age_s` (an older picture is stale; 0: 0.1 s, or two and a half periods at 10 pictures a
    second and fewer), `calibration` (file of `armstack calibrate-camera`).

    Args:
        make_camera: makes the camera instead of `source` (tests put a blocking one here).
        options: further arguments of `rclpy.node.Node`.
    """

    def __init__(self, *, make_camera: Callable[[], Camera] | None = None, **options: Any) -> None:
        super().__init__("camera", **options)
        self.failure = Failure()
        self._name = str(self.declare_parameter("camera", "front").value)
        self._size = int(self.declare_parameter("width", 0).value or 0), int(self.declare_parameter("height", 0).value or 0)
        rate_hz = float(self.declare_parameter("rate_hz", 30.0).value or 0.0)
        max_age_s = float(self.declare_parameter("max_age_s", 0.0).value or 0.0)
        if min(self._size) < 0 or (0 in self._size and self._size != (0, 0)):
            raise NodeError(f"parameters width, height: {self._size}, valid: both 0 (as they come), or both above 0")
        if not 0 < rate_hz < 1000:
            raise NodeError(f"parameter rate_hz: {rate_hz}, valid: above 0, below 1000")
        self._max_age_s = max_age_s or (_MAX_AGE_S if 1.0 / rate_hz < _MAX_AGE_S else _PERIODS / rate_hz)
        if not self._max_age_s > 1.0 / rate_hz:
            raise NodeError(
                f"parameter max_age_s: {max_age_s}, valid: above the camera's period, {1.0 / rate_hz:.3g} s, or 0 for the usual"
            )
        noisy = True
        try:
            self._stored = self._calibration()
            if self._size != (0, 0):
                require_opencv("another size of pictures (width, height)")
            if make_camera is None:
                make_camera, noisy = self._source(rate_hz)
        except ArmstackError as error:
            raise NodeError(str(error)) from error
        self._publisher = CameraPublisher(self, self._name, rate_hz=rate_hz, max_age_s=self._max_age_s)
        self._captured: tuple[int, int] | None = None
        self._newest_ns = 0
        self._newest_at: float | None = None
        self._late = False
        self._closing = threading.Event()
        self._grabber = Grabber(
            make_camera, deliver=self._deliver, failed=self._failed, frozen_s=max(_FROZEN_S, 5.0 / rate_hz), noisy=noisy
        )
        self.create_timer(_CHECK_S, self._check)
        self.create_timer(1.0, self._report)
        self._grabber.start()

    def _calibration(self) -> StoredCalibration | None:
        path = str(self.declare_parameter("calibration", "").value or "")
        return StoredCalibration.load(Path(path)) if path else None

    def _source(self, rate_hz: float) -> tuple[Callable[[], Camera], bool]:
        """What makes the camera that the parameters ask for, each of its settings being one; and whether its pictures have noise."""
        source = str(self.declare_parameter("source", "v4l2").value)
        entry = find_camera(source)
        overrides = self._parameter_overrides  # what was given; a parameter nobody declares is otherwise ignored in silence
        own = {field.name for field in dataclasses.fields(entry.settings)}
        every = {field.name for other in CAMERAS.values() for field in dataclasses.fields(other.settings)} - {"rate_hz"}
        given = {key: overrides[key].value for key in every & set(overrides)}
        if unused := sorted(key for key in given.keys() - own if given[key] not in ("", 0)):
            raise CameraError(f"source {source}: no setting {', '.join(unused)}; settings: {', '.join(sorted(own))}")
        values = {key: self.declare_parameter(key, given[key]).value for key in sorted(own & given.keys())}
        if "rate_hz" in own:
            values["rate_hz"] = rate_hz
        if isinstance(values.get("topic"), str) and values["topic"]:
            values["topic"] = self.resolve_topic_name(values["topic"])
            if values["topic"] == self.resolve_topic_name(f"camera/{self._name}/image_raw"):
                raise CameraError(f"topic {values['topic']} is what this node publishes; valid: another topic, or another name (camera)")
        settings = make_settings(source, values)
        require_library(source)
        make_camera(source, settings)  # a setting that cannot be meant is found here
        return (lambda: make_camera(source, settings)), entry.noisy

    # -- the grabbing thread --------------------------------------------------------------------------------------------

    def _deliver(self, frame: Frame, lens: Lens | None) -> None:
        if self._closing.is_set():
            return
        height, width, _ = frame.pixels.shape
        if self._captured is None:
            self._captured = width, height
            try:
                self._offer(self._captured, lens)
            except ArmstackError as error:
                self.failure.report(NodeError(f"parameter calibration: {error}"))
        elif self._captured != (width, height):
            was = "x".join(map(str, self._captured))
            self.failure.report(NodeError(f"camera {self._name}: its pictures became {width}x{height}, they were {was}; start it again"))
        old = time.time_ns() - frame.stamp_ns > self._max_age_s * 1e9
        gap = self._newest_ns > 0 and frame.stamp_ns - self._newest_ns > self._max_age_s * 1e9
        self._newest_ns, self._newest_at = frame.stamp_ns, time.monotonic()
        self._publisher.publish(self._resized(frame.pixels), frame.stamp_ns, stale=old or gap)

    def _offer(self, captured: tuple[int, int], lens: Lens | None) -> None:
        published = captured if self._size == (0, 0) else self._size
        calibration: CameraCalibration | None = None
        if self._stored is not None:
            calibration = self._stored.for_pictures(captured, published)
            lens = Lens(width=published[0], height=published[1], matrix=calibration.matrix, distortion=calibration.distortion)
        elif lens is not None:
            lens = lens.scaled(*published)
        self._publisher.offer(published[1], published[0], lens=lens, calibration=calibration)
        self.get_logger().info(f"camera {self._name} ready: {self._grabber.identity}, {published[0]}x{published[1]}")

    def _resized(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if self._size in ((0, 0), (pixels.shape[1], pixels.shape[0])):
            return pixels
        import cv2

        smaller = self._size[0] < pixels.shape[1]
        return np.asarray(cv2.resize(pixels, self._size, interpolation=cv2.INTER_AREA if smaller else cv2.INTER_LINEAR), np.uint8)

    def _failed(self, error: Exception) -> None:
        what = error if isinstance(error, ArmstackError) else f"{type(error).__name__}: {error}"
        self.failure.report(NodeError(f"camera {self._name}: {what}"))

    # -- the node's -----------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        before = self._grabber.state
        self._grabber.check()
        late = self._newest_at is not None and time.monotonic() - self._newest_at > self._max_age_s
        if self._grabber.state != before and self._grabber.state in ("frozen", "waiting"):
            self.get_logger().warning(f"camera {self._grabber.identity} lost: {self._grabber.last_error}; it is opened again")
        if late != self._late or self._grabber.state != before:
            self._late = late
            self._report()

    def _report(self) -> None:
        grabber = self._grabber
        problem = ""
        if self._newest_at is None:
            problem = f"no picture yet: {grabber.last_error or grabber.state}"
        elif self._late:
            age_s = time.monotonic() - self._newest_at
            problem = f"stale: the newest picture came {age_s:.2f} s ago; {grabber.state}" + f": {grabber.last_error}" * bool(
                grabber.last_error
            )
        values = {"state": grabber.state, "reopened": grabber.reopened, "repeated": grabber.repeated, "last_error": grabber.last_error}
        self._publisher.report(values, title=f"camera {self._name}", hardware_id=grabber.identity, problem=problem)

    def close(self) -> None:
        """Lets the camera go; one that hangs is left behind."""
        self._closing.set()
        self._grabber.close()


def main() -> int:
    """Entry point of `real_camera_node`."""
    return run(RealCameraNode)


if __name__ == "__main__":
    raise SystemExit(main())
