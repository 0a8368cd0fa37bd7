"""V4L2Camera: a camera that Linux knows as a video device (USB webcams and most others), through OpenCV."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from robot_bridge.cameras.base import CameraError, CameraLost, Frame
from robot_bridge.cameras.lens import Lens
from robot_bridge.cameras.v4l2_devices import by_link, by_serial

_OLDEST_S = 5.0


class V4L2Camera:
    """Bound by serial number or by one of udev's links, looked up anew at every `open`. See `Camera`.

    Args:
        serial: of the USB device, as `lsusb -v` or `cat /sys/class/video4linux/*/device/../serial` show it.
        path: /dev/v4l/by-id/... or /dev/v4l/by-path/..., for a camera without a serial number of its own; one of the two.
        capture_width, capture_height: pixels asked for; 0 takes what the camera is set to.
        fourcc: pixel format asked for, e.g. MJPG, which many need for a high rate; empty takes what the camera is set to.
        rate_hz: pictures a second asked for.
        dev, sys: where devices and sysfs are.
        open_capture: makes the `cv2.VideoCapture` of a device.

    Raises:
        CameraError: a setting is missing or none.
    """

    def __init__(
        self,
        *,
        serial: str = "",
        path: str = "",
        capture_width: int = 0,
        capture_height: int = 0,
        fourcc: str = "",
        rate_hz: float = 30.0,
        dev: Path = Path("/dev"),
        sys: Path = Path("/sys"),
        open_capture: Callable[[str], Any] | None = None,
    ) -> None:
        if bool(serial) == bool(path):
            raise CameraError(f"serial {serial!r}, path {path!r}; valid: one of the two")
        if len(fourcc) not in (0, 4):
            raise CameraError(f"fourcc {fourcc!r}, valid: four letters, e.g. MJPG")
        self.lens: Lens | None = None
        self._bound = serial or path
        self._find = (lambda: by_serial(serial, dev, sys)) if serial else (lambda: by_link(path, dev, sys))
        self._size = capture_width, capture_height
        self._fourcc = fourcc
        self._rate_hz = rate_hz
        self._open_capture = open_capture or _video_capture
        self._capture: Any = None

    def open(self) -> str:
        """See `Camera.open`."""
        import cv2

        device = self._find()
        capture = self._open_capture(str(device))
        if not capture.isOpened():
            raise CameraLost(f"camera {self._bound}: {device} cannot be opened; is it used by another program, may this user read it?")
        self._capture = capture
        if self._find() != device:  # unplugged and plugged in again meanwhile: another camera may have got the number
            raise CameraLost(f"camera {self._bound}: {device} became another camera while it was opened")
        if self._fourcc:
            capture.set(cv2.CAP_PROP_FOURCC, cv2.VideoWriter.fourcc(*self._fourcc))
        for field, pixels in zip((cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT), self._size, strict=True):
            if pixels:
                capture.set(field, pixels)
        capture.set(cv2.CAP_PROP_FPS, self._rate_hz)
        capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)  # after a pause the next picture is a new one
        found = int(capture.get(cv2.CAP_PROP_FRAME_WIDTH)), int(capture.get(cv2.CAP_PROP_FRAME_HEIGHT))
        if any(wanted not in (0, there) for wanted, there in zip(self._size, found, strict=True)):
            wanted = "x".join(map(str, self._size))
            raise CameraError(f"camera {self._bound}: capture size {wanted}, the camera gives {found[0]}x{found[1]}")
        return self._bound

    def grab(self) -> Frame | None:
        """See `Camera.grab`."""
        import cv2

        if not self._capture.grab():
            raise CameraLost(f"camera {self._bound} gives no pictures; was it unplugged?")
        stamp_ns = time.time_ns() - self._age_ns()
        there, pixels = self._capture.retrieve()
        if not there:
            raise CameraLost(f"camera {self._bound}: a picture could not be decoded")
        return Frame(pixels=cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB), stamp_ns=stamp_ns)

    def close(self) -> None:
        """See `Camera.close`."""
        capture, self._capture = self._capture, None
        if capture is not None:
            capture.release()

    def _age_ns(self) -> int:
        """Since the driver stamped the picture just grabbed, on the monotonic clock; 0 where it stamps none."""
        import cv2

        age_s = time.monotonic() - self._capture.get(cv2.CAP_PROP_POS_MSEC) * 1e-3
        return int(age_s * 1e9) if 0.0 <= age_s < _OLDEST_S else 0


def _video_capture(device: str) -> Any:
    import cv2

    return cv2.VideoCapture(device, cv2.CAP_V4L2)
