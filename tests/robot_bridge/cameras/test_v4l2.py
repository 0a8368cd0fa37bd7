"""Cameras of Linux are bound by what does not change with a reboot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import pytest

from robot_bridge.cameras.base import CameraError, CameraLost
from robot_bridge.cameras.v4l2 import V4L2Camera
from robot_bridge.cameras.v4l2_devices import video_devices
from tests.robot_bridge.cameras.plugged import HUB_SERIAL, plug, video

RED, BLUE = (250, 0, 0), (0, 0, 250)


@pytest.fixture
def red(tmp_path: Path) -> Path:
    return video(tmp_path / "red.avi", RED)


@pytest.fixture
def blue(tmp_path: Path) -> Path:
    return video(tmp_path / "blue.avi", BLUE)


def _colour(**settings: Any) -> tuple[int, ...]:
    """Of the first picture; OpenCV plays the video that stands for the device."""
    camera = V4L2Camera(open_capture=cv2.VideoCapture, **settings)
    camera.open()
    frame = camera.grab()
    camera.close()
    assert frame is not None
    return tuple(int(round(value, -1)) for value in frame.pixels.mean(axis=(0, 1)))


def test_camera_indices_that_swap_after_a_reboot_do_not_swap_the_cameras(tmp_path: Path, red: Path, blue: Path) -> None:
    first, second = ("SERIAL_RED", red), ("SERIAL_BLUE", blue)
    for order in ([first, second], [second, first]):
        roots = plug(tmp_path, order)
        assert [device.serial for device in video_devices(**roots) if device.function == 0] == [serial for serial, _ in order]
        assert _colour(serial="SERIAL_RED", **roots) == RED
        assert _colour(serial="SERIAL_BLUE", **roots) == BLUE
        assert _colour(path=str(tmp_path / "dev/v4l/by-id/usb-UVC_SERIAL_RED-video-index0"), **roots) == RED
    with pytest.raises(CameraError) as refused:
        V4L2Camera(serial="SERIAL_GREEN", **roots).open()
    assert all(text in str(refused.value) for text in ("SERIAL_GREEN", "SERIAL_RED", "SERIAL_BLUE"))
    assert HUB_SERIAL not in str(refused.value)


def test_a_number_that_changes_with_a_reboot_is_no_camera(tmp_path: Path, red: Path) -> None:
    roots = plug(tmp_path, [("A", red)])
    with pytest.raises(CameraError, match=r"changes when.*by-id/usb-UVC_A-video-index0"):
        V4L2Camera(path=str(tmp_path / "dev/video0"), **roots).open()
    with pytest.raises(CameraError, match="is not there.*by-id/usb-UVC_A-video-index0"):
        V4L2Camera(path="/dev/v4l/by-id/usb-other", **roots).open()


def test_two_cameras_of_one_serial_number_are_told_apart_by_their_ports(tmp_path: Path, red: Path, blue: Path) -> None:
    roots = plug(tmp_path, [("0001", red), ("0001", blue)])
    with pytest.raises(CameraError, match=r"2 cameras have serial '0001'.*by-path/pci-usb-0:1-video-index0"):
        V4L2Camera(serial="0001", **roots).open()
    assert _colour(path=str(tmp_path / "dev/v4l/by-path/pci-usb-0:1-video-index0"), **roots) == BLUE


def test_a_camera_without_a_serial_number_does_not_get_its_hubs(tmp_path: Path, red: Path) -> None:
    roots = plug(tmp_path, [("", red)])
    assert {device.serial for device in video_devices(**roots)} == {""}
    with pytest.raises(CameraError, match=r"none \(UVC Camera"):
        V4L2Camera(serial=HUB_SERIAL, **roots).open()


def test_another_camera_that_gets_the_number_while_it_is_opened_is_refused(tmp_path: Path, red: Path, blue: Path) -> None:
    roots = plug(tmp_path, [("RED", red), ("BLUE", blue)])

    def swapping(device: str) -> Any:
        capture = cv2.VideoCapture(device)
        plug(tmp_path, [("BLUE", blue), ("RED", red)])
        return capture

    with pytest.raises(CameraLost, match="became another camera"):
        V4L2Camera(serial="RED", open_capture=swapping, **roots).open()


def test_a_device_that_cannot_be_opened_and_one_that_gives_nothing_any_more_are_lost(tmp_path: Path, red: Path) -> None:
    roots = plug(tmp_path, [("RED", red)])
    with pytest.raises(CameraLost, match="video0 cannot be opened"):
        V4L2Camera(serial="RED", **roots).open()  # a video is no V4L2 device
    camera = V4L2Camera(serial="RED", open_capture=cv2.VideoCapture, **roots)
    camera.open()
    with pytest.raises(CameraLost, match="unplugged"):
        for _ in range(6):
            camera.grab()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: V4L2Camera(), "one of the two"),
        (lambda: V4L2Camera(serial="A", path="/dev/v4l/by-id/b"), "one of the two"),
        (lambda: V4L2Camera(serial="A", fourcc="MJPEG"), "four letters"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(make: Callable[[], V4L2Camera], message: str) -> None:
    with pytest.raises(CameraError, match=message):
        make()


def test_a_size_the_camera_does_not_have_is_refused_with_the_one_it_has(tmp_path: Path, red: Path) -> None:
    roots = plug(tmp_path, [("RED", red)])
    camera = V4L2Camera(serial="RED", capture_width=640, capture_height=480, open_capture=cv2.VideoCapture, **roots)
    with pytest.raises(CameraError, match="640x480, the camera gives 32x24"):
        camera.open()
