"""The node of real cameras, over a real graph."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.parameter import Parameter
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import String

from rl_core.camera_calibration import CameraCalibration
from rl_core.camera_channel import channel_from_json
from rl_core.contract import ContractError
from rl_core.data.formats.bag_graph import Graph as BagGraph
from robot_bridge.cameras.base import Camera, Frame
from robot_bridge.cameras.calibration import StoredCalibration
from robot_bridge.cameras.lens import Lens
from robot_bridge.launch_file import read_launch_file
from robot_bridge.launch_places import find_launch_file
from robot_bridge.nodes.messages import image_to_rgb
from robot_bridge.nodes.policy_node import PolicyNode
from robot_bridge.nodes.qos import LATCHED, SENSOR
from robot_bridge.nodes.real_camera_node import RealCameraNode
from robot_bridge.nodes.spin import NodeError
from tests.end_to_end.driver import Driver, arm_node
from tests.robot_bridge.cameras.fakes import HangingCamera, ScriptedCamera, frame
from tests.robot_bridge.cameras.plugged import video
from tests.ros_graph import Graph, spun

CALIBRATION = CameraCalibration(
    frame="ee", position=(0.03, -0.05, 0.06), quaternion=(0.0, 0.0, 0.6, 0.8), matrix=(610.0, 612.0, 318.0, 243.0),
    distortion=(-0.1, 0.05, 0.001, -0.0005, 0.0),
)  # fmt: skip


@contextmanager
def camera_node(make_camera: Callable[[], Camera] | None = None, **parameters: Any) -> Iterator[RealCameraNode]:
    overrides = [Parameter(name, value=value) for name, value in parameters.items()]
    node = RealCameraNode(make_camera=make_camera, parameter_overrides=overrides)
    with spun(node):
        yield node


def _pictures(size: tuple[int, int] = (8, 6), period_s: float = 0.01) -> Iterator[Frame | Exception | None]:
    for value in itertools.count():
        time.sleep(period_s)
        yield frame(value, size)


def _values(message: DiagnosticArray) -> dict[str, str]:
    return {pair.key: pair.value for pair in message.status[0].values}


def test_contract_and_camera_info_carry_the_calibration_scaled_to_what_is_published(graph: Graph, tmp_path: Path) -> None:
    file = tmp_path / "front.json"
    StoredCalibration(width=640, height=480, calibration=CALIBRATION, figures={}).save(file)
    images = graph.collect(Image, "camera/front/image_raw", SENSOR)
    infos = graph.collect(CameraInfo, "camera/front/camera_info", SENSOR)
    contracts = graph.collect(String, "camera/front/contract", LATCHED)
    camera = ScriptedCamera(lambda: _pictures((320, 240)))
    with camera_node(lambda: camera, calibration=str(file), width=64, height=48):
        image, info, text = images.wait(), infos.wait(), contracts.wait().data
    assert image_to_rgb(image).shape == (48, 64, 3) and image.header.frame_id == "camera_front" and camera.closed.is_set()
    channel = channel_from_json(text)
    assert channel.name == "front_image" and channel.shape == (48, 64, 3) and channel.calibration is not None
    assert channel.calibration.position == CALIBRATION.position and channel.calibration.quaternion == CALIBRATION.quaternion
    fx, fy, cx, cy = (61.0, 61.2, 318.5 / 10 - 0.5, 243.5 / 10 - 0.5)
    assert channel.calibration.matrix == pytest.approx((fx, fy, cx, cy))
    assert info.k.tolist() == pytest.approx([fx, 0, cx, 0, fy, cy, 0, 0, 1]) and list(info.d) == list(CALIBRATION.distortion)
    assert info.p.tolist() == pytest.approx([fx, 0, cx, 0, 0, fy, cy, 0, 0, 0, 1, 0]) and info.distortion_model == "plumb_bob"
    assert (info.width, info.height) == (64, 48)
    # Who reads the contract has it too: the policy node, and what makes datasets of topics.
    policy: Any = SimpleNamespace(_heard=threading.Condition(), _cameras={})
    PolicyNode._camera_came(policy, String(data=text))
    bag = BagGraph()
    bag.hear("/camera/front/contract", text)
    assert policy._cameras == bag._cameras == {"front_image": channel}


def test_a_contract_that_is_none_is_refused() -> None:
    for text in ("{", "[]", '{"name": "front_image"}', '{"name": "a", "kind": "image", "calibration": {"frame": "base"}}'):
        with pytest.raises(ContractError):
            channel_from_json(text)


def test_a_lens_that_the_camera_knows_itself_is_told(graph: Graph) -> None:
    infos = graph.collect(CameraInfo, "camera/front/camera_info", SENSOR)
    lens = Lens(width=8, height=6, matrix=(10.0, 12.0, 3.5, 2.5))
    with camera_node(lambda: ScriptedCamera(_pictures, lens=lens), width=4, height=3):
        info = infos.wait()
    assert info.k.tolist() == [5.0, 0.0, 1.5, 0.0, 6.0, 1.0, 0.0, 0.0, 1.0]


def test_a_camera_that_blocks_does_not_slow_the_control_loop_and_its_late_picture_is_marked_stale(graph: Graph) -> None:
    """It blocks once in 30 pictures until 25 control periods, more than 200 ms, went by; the loop would stand if it waited for it."""
    blocked, released = threading.Event(), threading.Event()

    def blocks() -> Iterator[Frame | Exception | None]:
        for value in itertools.count(1):
            if value == 30:
                blocked.set()
                released.wait()
            time.sleep(0.005)
            yield frame(value)

    diagnostics = graph.collect(DiagnosticArray, "diagnostics")
    images = graph.collect(Image, "camera/front/image_raw", SENSOR)
    with camera_node(lambda: ScriptedCamera(blocks)), arm_node():
        driver = Driver(graph)
        assert blocked.wait(20)
        begin = len(driver.applied.messages)
        driver.applied.wait(after=begin + 25, timeout_s=20)
        released.set()
        diagnostics.wait(lambda m: m.status[0].name == "camera front" and int(_values(m)["stale"]) >= 1, timeout_s=20)
        stamps, _ = driver.track()
    assert len(images.messages) > 5
    during = np.diff(stamps[begin : begin + 25]) * 1e-9
    assert during.max() < 0.2  # no period as long as the camera was blocked


def test_a_frozen_camera_is_marked_stale_at_once_and_opened_again(graph: Graph) -> None:
    hanging = HangingCamera(pictures=3)
    cameras: Iterator[Camera] = iter([hanging, ScriptedCamera(_pictures)])
    diagnostics = graph.collect(DiagnosticArray, "diagnostics")
    images = graph.collect(Image, "camera/front/image_raw", SENSOR)
    with camera_node(lambda: next(cameras)):
        late = diagnostics.wait(lambda m: "stale: the newest picture came" in m.status[0].message)
        assert late.status[0].level == DiagnosticStatus.ERROR and late.status[0].hardware_id == "serial 7"
        frozen = diagnostics.wait(lambda m: _values(m)["state"] == "frozen")
        assert "no new picture" in frozen.status[0].message
        pictures = len(images.messages)
        images.wait(after=pictures)
        back = diagnostics.wait(lambda m: _values(m)["state"] == "running", after=diagnostics.messages.index(frozen))
        assert _values(back)["reopened"] == "1"
    hanging.release.set()


def test_sigterm_ends_the_node_while_its_camera_hangs(graph: Graph) -> None:
    """As soon as any other node, well within 2 s on a machine that is free; a node that waited for its camera would never end."""
    process = graph.process("tests.robot_bridge.cameras.hanging_camera_node")
    process.wait_line("ready: serial 7")
    assert process.end(signal.SIGTERM, timeout_s=20.0) == 0


def test_the_entry_point_plays_a_file(graph: Graph, tmp_path: Path) -> None:
    images = graph.collect(Image, "camera/wrist/image_raw", SENSOR)
    file = video(tmp_path / "red.avi", (250, 0, 0))
    arguments = [f"file:={file}", "source:=file", "camera:=wrist", "rate_hz:=50.0", 'serial:=""']
    process = graph.process("robot_bridge.nodes", "real_camera_node", "--ros-args", *itertools.chain(*(("-p", a) for a in arguments)))
    process.wait_line("camera wrist ready")
    pixels = image_to_rgb(images.wait(timeout_s=30))
    assert abs(pixels.mean(axis=(0, 1)) - (250, 0, 0)).max() < 6
    assert process.end() == 0


def test_a_camera_that_is_not_there_ends_the_node_with_those_that_are(graph: Graph) -> None:
    with camera_node(source="v4l2", serial="NONE_SUCH") as node:
        deadline = time.monotonic() + 10
        with pytest.raises(NodeError, match=r"camera front: no camera with serial 'NONE_SUCH'; serials found: "):
            while time.monotonic() < deadline:
                node.failure.raise_reported()
                time.sleep(0.01)


def test_a_calibration_of_another_shape_ends_the_node(graph: Graph, tmp_path: Path) -> None:
    file = tmp_path / "front.json"
    StoredCalibration(width=640, height=360, calibration=CALIBRATION, figures={}).save(file)
    with camera_node(lambda: ScriptedCamera(_pictures), calibration=str(file)) as node:
        deadline = time.monotonic() + 10
        with pytest.raises(NodeError, match="made of pictures of 640x360; the camera gives 8x6"):
            while time.monotonic() < deadline:
                node.failure.raise_reported()
                time.sleep(0.01)


def test_the_launch_file_hands_texts_and_numbers_on_as_such() -> None:
    (spec,) = read_launch_file(find_launch_file("camera"), {"serial": "0123", "camera": "wrist", "rate_hz": "15", "namespace": "left"})
    assert "real_camera_node" in spec.command and "__ns:=/left" in spec.command
    assert {'serial:="0123"', 'camera:="wrist"', "rate_hz:=15.0", "width:=0", 'path:=""'} <= set(spec.command)


@pytest.mark.parametrize(
    ("rate_hz", "given", "max_age_s"), [(30.0, 0.0, 0.1), (11.0, 0.0, 0.1), (10.0, 0.0, 0.25), (2.0, 0.0, 1.25), (30.0, 0.4, 0.4)]
)
def test_a_slow_camera_may_have_older_pictures(graph: Graph, rate_hz: float, given: float, max_age_s: float) -> None:
    contracts = graph.collect(String, "camera/front/contract", LATCHED)
    with camera_node(lambda: ScriptedCamera(_pictures), rate_hz=rate_hz, max_age_s=given):
        assert channel_from_json(contracts.wait().data).max_age_s == pytest.approx(max_age_s)


@pytest.mark.parametrize(("name", "given"), [("camera", {}), ("aux", {"method": "tempme", "bundle": "bundle"})])
def test_two_pictures_a_second_are_launched(graph: Graph, tmp_path: Path, name: str, given: dict[str, str]) -> None:
    file = video(tmp_path / "red.avi", (250, 0, 0))
    specs = read_launch_file(find_launch_file(name), {**given, "rate_hz": "2", "source": "file", "file": str(file)})
    (command,) = (spec.command for spec in specs if "real_camera_node" in spec.command)
    process = graph.process("robot_bridge.nodes", *command[command.index("real_camera_node") :])
    process.wait_line("camera front ready")
    assert process.end() == 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"source": "webcam"}, "sources: v4l2, realsense, topic, file"),
        ({"source": "v4l2", "serial": "A", "topic": "/a"}, "source v4l2: no setting topic; settings: .*serial"),
        ({"source": "v4l2", "serial": 123}, "serial 123 is a number"),
        ({"source": "v4l2"}, "valid: one of the two"),
        ({"source": "topic", "topic": "camera/front/image_raw"}, "is what this node publishes"),
        ({"source": "file", "file": "a", "max_age_s": 0.01}, "max_age_s: 0.01, valid: above the camera's period"),
        ({"source": "file", "file": "a", "max_age_s": -0.5}, "max_age_s: -0.5, valid: above the camera's period"),
        ({"source": "file", "file": "a", "width": 64}, "valid: both 0"),
        ({"source": "file", "file": "a", "rate_hz": 0.0}, "rate_hz: 0.0"),
        ({"source": "file", "file": "a", "calibration": "/nosuch.json"}, "/nosuch.json: No such file"),
    ],
)
def test_parameters_are_refused_by_name(ros: int, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(NodeError, match=message):
        RealCameraNode(parameter_overrides=[Parameter(name, value=value) for name, value in parameters.items()])
