"""Sources of pictures and their registry."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image

from robot_bridge.cameras import registry
from robot_bridge.cameras.base import Camera, CameraError, Frame
from robot_bridge.cameras.file import FileCamera
from robot_bridge.cameras.realsense import RealSenseCamera
from robot_bridge.cameras.registry import CAMERAS, make_camera, make_settings, require_library
from robot_bridge.cameras.topic import TopicCamera
from robot_bridge.nodes.stamps import to_ns, to_time
from tests.robot_bridge.cameras.plugged import video
from tests.ros_graph import Graph

RED = (250, 0, 0)


def _grab(camera: Camera, timeout_s: float = 10.0) -> Frame:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        frame = camera.grab()
        if frame is not None:
            return frame
    raise AssertionError(f"no picture within {timeout_s} s")


def test_a_video_is_played_over_and_over_at_the_given_rate(tmp_path: Path) -> None:
    camera = FileCamera(file=str(video(tmp_path / "red.avi", RED, frames=3)), rate_hz=100.0)
    assert camera.open().endswith("red.avi")
    begin = time.monotonic()
    frames = [_grab(camera) for _ in range(7)]
    assert time.monotonic() - begin > 0.055
    assert all(abs(frame.pixels.mean(axis=(0, 1)) - RED).max() < 6 for frame in frames)
    assert all(b.stamp_ns > a.stamp_ns for a, b in itertools.pairwise(frames))
    camera.close()


def test_a_folder_is_shown_in_the_order_of_names(tmp_path: Path) -> None:
    for i in (2, 0, 1):
        cv2.imwrite(str(tmp_path / f"{i}.png"), np.full((4, 6, 3), (0, 0, 10 * i), np.uint8))
    (tmp_path / "notes.txt").touch()
    camera = FileCamera(file=str(tmp_path), rate_hz=500.0)
    camera.open()
    assert [tuple(_grab(camera).pixels[0, 0]) for _ in range(4)] == [(0, 0, 0), (10, 0, 0), (20, 0, 0), (0, 0, 0)]


def test_what_is_no_video_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CameraError, match="no picture"):
        FileCamera(file=str(tmp_path / "empty")).open()
    with pytest.raises(CameraError, match="not there"):
        FileCamera(file=str(tmp_path / "nosuch.mp4")).open()
    (tmp_path / "text.mp4").write_text("no video")
    camera = FileCamera(file=str(tmp_path / "text.mp4"))
    camera.open()
    with pytest.raises(CameraError, match="no picture in it"):
        camera.grab()


def _image(encoding: str, first: tuple[int, ...], padding: int = 0) -> Image:
    """2 x 3 pixels of one value, rows padded."""
    message = Image(height=2, width=3, encoding=encoding, step=3 * len(first) + padding)
    message.data = (bytes(first) * 3 + bytes(padding)) * 2
    return message


@pytest.mark.parametrize(
    ("reliability", "durability"),
    itertools.product(
        (ReliabilityPolicy.RELIABLE, ReliabilityPolicy.BEST_EFFORT), (DurabilityPolicy.TRANSIENT_LOCAL, DurabilityPolicy.VOLATILE)
    ),
)
def test_pictures_of_any_publisher_become_rgb(graph: Graph, reliability: Any, durability: Any) -> None:
    profile = QoSProfile(depth=1, reliability=reliability, durability=durability)
    publisher = graph.probe.create_publisher(Image, "/other/image", profile)
    camera = TopicCamera(topic="/other/image")
    camera.open()
    cases = [_image("bgr8", (0, 0, 250)), _image("rgb8", (250, 0, 0), 5), _image("rgba8", (250, 0, 0, 9)), _image("mono8", (7,))]
    stop = threading.Event()
    for number, message in enumerate(cases, 1):
        message.header.stamp = to_time(number)
        stop.clear()

        def send(message: Image = message) -> None:
            while not stop.wait(0.02):
                publisher.publish(message)

        sending = threading.Thread(target=send)
        sending.start()
        try:
            while (frame := _grab(camera)).stamp_ns != to_ns(message.header.stamp):
                pass
        finally:
            stop.set()
            sending.join()
        assert frame.pixels.shape == (2, 3, 3)
        assert (frame.pixels == ((7, 7, 7) if message.encoding == "mono8" else RED)).all()
    camera.close()


def test_an_encoding_that_is_not_known_is_refused_and_a_silent_topic_gives_nothing(graph: Graph) -> None:
    camera = TopicCamera(topic="/other/image")
    camera.open()
    assert camera.grab() is None
    camera._came(_image("bayer_rggb8", (1,)))
    with pytest.raises(CameraError, match="/other/image.*bayer_rggb8.*valid"):
        camera.grab()
    camera.close()


def test_pictures_and_lens_of_a_realsense_come_through_its_library(tmp_path: Path) -> None:
    try:
        import pyrealsense2 as rs
    except ImportError as error:
        pytest.skip(f"pyrealsense2 cannot be loaded: {error}; pip install 'armstack[realsense]', apt install libusb-1.0-0")
    recording = tmp_path / "camera.db3"
    _record_realsense(rs, recording)
    context = rs.context()
    device = context.load_device(str(recording))
    with pytest.raises(CameraError, match="serials found: 123456"):
        RealSenseCamera(serial="654321", context=context).open()
    camera = RealSenseCamera(serial="123456", rate_hz=30.0, context=context)
    assert camera.open() == "123456"
    frame = _grab(camera)
    assert frame.pixels.shape == (48, 64, 3) and tuple(frame.pixels[0, 0, :2]) == (200, 10)
    assert 1_000_000_000 <= frame.stamp_ns < 4_000_000_000
    assert camera.lens is not None and camera.lens.matrix == pytest.approx((60, 61, 32, 24))
    camera.close()
    del device


def _record_realsense(rs: Any, file: Path) -> None:
    """A device made of the library's own software sensor, recorded with its recorder."""
    device = rs.software_device()
    device.register_info(rs.camera_info.serial_number, "123456")
    device.register_info(rs.camera_info.name, "software")
    sensor = device.add_sensor("RGB")
    lens = rs.intrinsics()
    lens.width, lens.height, lens.fx, lens.fy, lens.ppx, lens.ppy = 64, 48, 60, 61, 32, 24
    lens.model, lens.coeffs = rs.distortion.brown_conrady, [0] * 5
    stream = rs.video_stream()
    stream.type, stream.fmt, stream.index, stream.uid = rs.stream.color, rs.format.rgb8, 0, 1
    stream.width, stream.height, stream.fps, stream.bpp, stream.intrinsics = 64, 48, 30, 3, lens
    profile = sensor.add_video_stream(stream).as_video_stream_profile()
    recorder = rs.recorder(str(file), device)
    recorded = recorder.query_sensors()[0]
    recorded.open(recorded.get_stream_profiles()[0])
    arrived = threading.Semaphore(0)
    recorded.start(lambda frame: arrived.release())
    for number in range(60):
        frame = rs.software_video_frame()
        frame.stride, frame.bpp, frame.profile = 64 * 3, 3, profile
        frame.timestamp, frame.domain, frame.frame_number = 1000 + number * 33.0, rs.timestamp_domain.system_time, number
        frame.pixels = np.full((48, 64, 3), (200, 10, number), np.uint8)
        sensor.on_video_frame(frame)
        assert arrived.acquire(timeout=10)
    recorded.stop()
    recorded.close()


@pytest.mark.parametrize(
    ("source", "values", "message"),
    [
        ("webcam", {}, "sources: v4l2, realsense, topic, file"),
        ("realsense", {}, "setting serial is missing"),
        ("v4l2", {"serial": 123}, "serial 123 is a number, valid: text"),
        ("v4l2", {"serial": "1", "topic": "/a"}, "no field 'topic'"),
        ("file", {"file": "a", "rate_hz": "fast"}, "rate_hz"),
    ],
)
def test_settings_are_refused_by_name(source: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(CameraError, match=message):
        make_settings(source, values)


@pytest.mark.parametrize("source", CAMERAS)
def test_a_missing_library_names_the_extra(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.importlib.util, "find_spec", lambda name: None)
    extra = CAMERAS[source].extra
    with pytest.raises(CameraError, match=rf"{CAMERAS[source].library}.*pip install 'armstack\[{extra}\]'"):
        require_library(source)
    assert f'"{extra}"' in (Path(__file__).parents[3] / "setup.py").read_text() or extra == "ros"


def test_every_source_is_made_of_its_settings() -> None:
    values = {"v4l2": {"serial": "1"}, "realsense": {"serial": "1"}, "topic": {"topic": "/a"}, "file": {"file": "a"}}
    assert set(values) == set(CAMERAS)
    for source, given in values.items():
        camera = make_camera(source, make_settings(source, given))
        assert camera.lens is None and callable(camera.grab)
