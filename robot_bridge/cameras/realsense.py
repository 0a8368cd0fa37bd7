"""RealSenseCamera: the colour stream of an Intel RealSense, through its own library."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from robot_bridge.cameras.base import CameraError, CameraLost, Frame
from robot_bridge.cameras.lens import Lens

_WAIT_MS = 500


class RealSenseCamera:
    """Bound by serial number; its lens comes from its factory calibration. See `Camera`.

    Args:
        serial: as `rs-enumerate-devices` shows it.
        capture_width, capture_height: pixels asked for; 0 takes the camera's own choice.
        rate_hz: pictures a second; the camera has some whole numbers.
        context: of the library; one with a recording loaded for tests.
    """

    def __init__(self, *, serial: str, capture_width: int = 0, capture_height: int = 0, rate_hz: float = 30.0, context: Any = None) -> None:
        self.lens: Lens | None = None
        self._serial = serial
        self._size = capture_width, capture_height
        self._rate_hz = round(rate_hz)
        self._context = context
        self._pipeline: Any = None

    def open(self) -> str:
        """See `Camera.open`."""
        try:
            import pyrealsense2 as rs
        except ImportError as error:  # the wheel brings all but libusb
            raise CameraError(
                f"pyrealsense2 does not load: {error}; pip install 'armstack[realsense]', apt install libusb-1.0-0"
            ) from error
        context = self._context or rs.context()
        serials = [device.get_info(rs.camera_info.serial_number) for device in context.query_devices()]
        if self._serial not in serials:
            raise CameraError(f"no RealSense with serial {self._serial!r}; serials found: {', '.join(serials) or 'none'}")
        config = rs.config()
        config.enable_device(self._serial)
        config.enable_stream(rs.stream.color, *self._size, rs.format.rgb8, self._rate_hz)
        pipeline = rs.pipeline(context)
        try:
            profile = pipeline.start(config)
        except RuntimeError as error:
            wanted = f"{self._size[0]}x{self._size[1]} rgb8 at {self._rate_hz} Hz"
            raise CameraLost(f"RealSense {self._serial} does not start {wanted}: {error}") from error
        self._pipeline = pipeline
        self.lens = _lens(profile.get_stream(rs.stream.color).as_video_stream_profile().get_intrinsics(), rs)
        return self._serial

    def grab(self) -> Frame | None:
        """See `Camera.grab`."""
        import pyrealsense2 as rs

        there, frames = self._pipeline.try_wait_for_frames(_WAIT_MS)
        color = frames.get_color_frame() if there else None
        if not color:
            return None
        own_clock = color.get_frame_timestamp_domain() == rs.timestamp_domain.hardware_clock
        stamp_ns = time.time_ns() if own_clock else int(color.get_timestamp() * 1e6)
        return Frame(pixels=np.array(color.get_data()), stamp_ns=stamp_ns)  # a copy: the library's buffers are few

    def close(self) -> None:
        """See `Camera.close`."""
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            pipeline.stop()


def _lens(found: Any, rs: Any) -> Lens | None:
    """Of librealsense's intrinsics; None for a distortion that `CameraInfo`'s plumb-bob model cannot say."""
    if any(found.coeffs) and found.model != rs.distortion.brown_conrady:
        return None
    matrix = (found.fx, found.fy, found.ppx, found.ppy)
    return Lens(width=found.width, height=found.height, matrix=matrix, distortion=tuple(found.coeffs))
