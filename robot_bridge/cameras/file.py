"""FileCamera: a video or a folder of pictures, over and over, to try everything without a camera."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from robot_bridge.cameras.base import CameraError, Frame
from robot_bridge.cameras.lens import Lens

PICTURES = (".png", ".jpg", ".jpeg", ".bmp")


class FileCamera:
    """Gives the pictures in their order at `rate_hz`, whatever the video's own rate is, and begins again after the last. See `Camera`.

    Args:
        file: a video, or a folder of pictures (.png, .jpg, .jpeg, .bmp) in the order of their names.
        rate_hz: pictures a second.
    """

    def __init__(self, *, file: str, rate_hz: float = 30.0) -> None:
        self.lens: Lens | None = None
        self._file = Path(file)
        self._period_s = 1.0 / rate_hz
        self._due = 0.0
        self._pictures: Iterator[Any] = iter(())

    def open(self) -> str:
        """See `Camera.open`."""
        if self._file.is_dir() and not picture_files(self._file):
            raise CameraError(f"{self._file}: no picture; valid: {', '.join(PICTURES)}")
        if not self._file.exists():
            raise CameraError(f"{self._file}: not there; valid: a video or a folder of pictures")
        self._pictures = self._all()
        self._due = time.monotonic()
        return str(self._file)

    def grab(self) -> Frame | None:
        """See `Camera.grab`.

        Raises:
            CameraError: a file is no picture or video.
        """
        import cv2

        pixels = next(self._pictures, None)
        if pixels is None:
            pictures = self._pictures = self._all()
            pixels = next(pictures, None)
        if pixels is None:
            raise CameraError(f"{self._file}: OpenCV reads no picture in it; valid: a video or a folder of pictures")
        time.sleep(max(0.0, self._due - time.monotonic()))
        self._due = max(self._due + self._period_s, time.monotonic())
        return Frame(pixels=cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB), stamp_ns=time.time_ns())

    def close(self) -> None:
        """See `Camera.close`."""
        self._pictures = iter(())

    def _all(self) -> Iterator[Any]:
        import cv2

        if self._file.is_dir():
            for file in picture_files(self._file):
                pixels = cv2.imread(str(file))
                if pixels is None:
                    raise CameraError(f"{file}: no picture that OpenCV reads")
                yield pixels
            return
        capture = cv2.VideoCapture(str(self._file))
        try:
            while True:
                there, pixels = capture.read()
                if not there:
                    return
                yield pixels
        finally:
            capture.release()


def picture_files(folder: Path) -> list[Path]:
    """The pictures in `folder`, in the order of their names."""
    return sorted(file for file in folder.iterdir() if file.suffix.lower() in PICTURES)
