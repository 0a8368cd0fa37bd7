"""`armstack calibrate-camera`."""

from __future__ import annotations

import io
import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from rclpy.serialization import serialize_message
from scipy.spatial.transform import Rotation, Slerp
from sensor_msgs.msg import Image

from rl_core.data.formats.bag import BagWriter
from robot_bridge.cameras import live_views
from robot_bridge.cameras.calibration import CalibrationError, StoredCalibration
from robot_bridge.cameras.views import POSES, HandPose, Picture, ViewFolder
from robot_bridge.commands.calibrate_camera import main
from robot_bridge.nodes.messages import pose, rgb_image
from robot_bridge.nodes.qos import SENSOR, STREAM, advertise
from tests.robot_bridge.cameras import synthetic
from tests.robot_bridge.cameras.synthetic import BOARD, error
from tests.robot_bridge.command_line import Cli
from tests.ros_graph import Graph


@pytest.fixture(scope="module")
def pictures() -> list[Picture]:
    return synthetic.drawn("hand", BOARD, count=9)


@pytest.fixture
def folder(pictures: list[Picture], tmp_path: Path) -> Path:
    views = ViewFolder(tmp_path / "views")
    for picture in pictures:
        views.add(picture.pixels, picture.hand)
    return tmp_path / "views"


def test_a_folder_of_views_becomes_the_file_of_the_camera_node(cli: Cli, folder: Path, tmp_path: Path) -> None:
    outcome = cli("calibrate-camera", folder, "--mount", "hand", "--out", tmp_path / "wrist.json", "--json")
    assert outcome.status == 0, outcome.err
    stored = StoredCalibration.load(tmp_path / "wrist.json")
    shift_mm, turn_deg = error(stored.calibration, "hand")
    assert shift_mm < 0.5 and turn_deg < 0.1 and (stored.width, stored.height) == (640, 480)
    assert outcome.figures["views"] == 9 and outcome.figures["residual_mm"] < 0.5
    assert "residual_mm" in outcome.err and "position in ee [m]" in outcome.err


def test_a_residual_over_the_bound_writes_nothing_unless_the_bound_is_raised(cli: Cli, folder: Path, tmp_path: Path) -> None:
    """The board was printed larger than said."""
    wrong = ("--mount", "hand", "--board.square-m", "0.04", "--out", tmp_path / "wrist.json")
    outcome = cli("calibrate-camera", folder, *wrong)
    assert outcome.status == 2 and "residual_mm" in outcome.err and "--max-mm" in outcome.err and "nothing was written" in outcome.err
    assert not (tmp_path / "wrist.json").exists()
    assert cli("calibrate-camera", folder, *wrong, "--max-mm", "1000", "--max-deg", "180").status == 0
    assert (tmp_path / "wrist.json").exists()


def test_a_set_with_a_view_too_few_is_refused_and_says_which_show_no_board(cli: Cli, folder: Path, tmp_path: Path) -> None:
    for name in ("view_001.png", "view_004.png"):
        cv2.imwrite(str(folder / name), np.full((480, 640, 3), 90, np.uint8))
    outcome = cli("calibrate-camera", folder, "--mount", "hand", "--out", tmp_path / "wrist.json")
    assert outcome.status == 2 and "seen in 7 views, valid: 8 or more" in outcome.err and not (tmp_path / "wrist.json").exists()
    assert "not found in 2 of 9 views: view_001.png, view_004.png" in " ".join(outcome.err.split())


def test_a_folder_that_is_not_whole_is_refused_by_name(cli: Cli, folder: Path, tmp_path: Path) -> None:
    command = ("calibrate-camera", folder, "--mount", "hand", "--out", tmp_path / "wrist.json")
    poses = json.loads((folder / POSES).read_text())
    cases: list[tuple[Any, str]] = [
        ({name: value for name, value in poses.items() if name != "view_003.png"}, "view_003.png is only one of picture and entry"),
        ({**poses, "view_003.png": {"position": [0, 0, 0], "quaternion": [0, 0, 0, 2]}}, "view_003.png: quaternion"),
        ({**poses, "view_003.png": {"position": [0, 0], "quaternion": [0, 0, 0, 1]}}, "view_003.png: position [0.0, 0.0]"),
        ({**poses, "view_003.png": {"position": [0, 0, 0]}}, "view_003.png: KeyError: 'quaternion'"),
        ([], "list, valid"),
    ]
    for values, message in cases:
        (folder / POSES).write_text(json.dumps(values))
        outcome = cli(*command)
        assert outcome.status == 2 and message in outcome.err
    (folder / POSES).write_text(json.dumps(poses))
    (folder / "view_003.png").write_text("no picture")
    assert "view_003.png: no picture" in cli(*command).err
    shutil.rmtree(folder)
    assert cli(*command).status == 2


def test_a_bag_gives_one_view_of_every_place_where_the_arm_stood_still(cli: Cli, pictures: list[Picture], tmp_path: Path) -> None:
    _write_bag(tmp_path / "bag", pictures)
    outcome = cli("calibrate-camera", tmp_path / "bag", "--mount", "hand", "--camera", "wrist", "--out", tmp_path / "wrist.json", "--json")
    assert outcome.status == 0, outcome.err
    assert outcome.figures["views"] == 9
    shift_mm, turn_deg = error(StoredCalibration.load(tmp_path / "wrist.json").calibration, "hand")
    assert shift_mm < 0.5 and turn_deg < 0.1
    outcome = cli("calibrate-camera", tmp_path / "bag", "--mount", "hand", "--camera", "front", "--out", tmp_path / "front.json")
    assert outcome.status == 2 and "0 messages on /camera/front/image_raw" in outcome.err


def _write_bag(path: Path, pictures: list[Picture]) -> None:
    """Poses at 20 Hz; at every place 1 s of rest with three pictures, then 1 s of motion with a picture that shows the place before."""
    bag = BagWriter(path)
    tick_ns, now = 50_000_000, 1_000_000_000_000

    def write(topic: str, kind: str, message: Any) -> None:
        bag.write(topic, kind, serialize_message(message), received_ns=now, sent_ns=now, sequence=0)

    for number, picture in enumerate(pictures):
        other = pictures[(number + 1) % len(pictures)].hand
        turning = Slerp([0, 1], Rotation.from_quat([picture.hand.quaternion, other.quaternion]))
        for tick in range(40):
            share = max(0.0, (tick - 20) / 20)
            position = (1 - share) * picture.hand.position + share * other.position
            hand = pose(position, turning(share).as_quat(), frame="base", stamp_ns=now)
            write("/ee_pose", "geometry_msgs/msg/PoseStamped", hand)
            if tick in (8, 10, 12, 30):
                image = rgb_image(picture.pixels, frame="camera_wrist", stamp_ns=now)
                image.encoding, image.step, image.data = "mono8", 640, picture.pixels[..., 0].tobytes()
                write("/camera/wrist/image_raw", "sensor_msgs/msg/Image", image)
            now += tick_ns
    bag.close()


@contextmanager
def _graph_shows(graph: Graph, picture: Picture, moving: threading.Event) -> Iterator[None]:
    """Publishes the picture at 20 Hz and the hand's pose, which sways while `moving`."""
    images, poses = advertise(graph.probe, Image, "camera/front/image_raw", SENSOR), advertise(graph.probe, PoseStamped, "ee_pose", STREAM)
    stop = threading.Event()

    def publish() -> None:
        tick = 0
        while not stop.wait(0.05):
            tick += 1
            now = time.time_ns()
            sway = 0.01 * (tick % 2) if moving.is_set() else 0.0
            images.publish(rgb_image(picture.pixels, frame="camera_front", stamp_ns=now))
            poses.publish(pose(picture.hand.position + sway, picture.hand.quaternion, frame="base", stamp_ns=now))

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_live_views_are_taken_with_enter_and_kept(
    graph: Graph, pictures: list[Picture], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n\nq\n\n"))
    with _graph_shows(graph, pictures[0], threading.Event()), pytest.raises(CalibrationError, match="seen in 2 views, valid: 8 or more"):
        main([str(tmp_path / "views"), "--live", "--mount", "hand", "--out", str(tmp_path / "wrist.json")])
    poses = json.loads((tmp_path / "views" / POSES).read_text())
    assert sorted(poses) == ["view_000.png", "view_001.png"]
    assert poses["view_000.png"]["position"] == pytest.approx(pictures[0].hand.position.tolist())
    kept = cv2.cvtColor(cv2.imread(str(tmp_path / "views/view_001.png")), cv2.COLOR_BGR2RGB)
    assert (kept == pictures[0].pixels).all()


def test_live_views_of_a_moving_arm_and_of_a_silent_graph_are_not_taken(
    graph: Graph, pictures: list[Picture], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_views, "_WAIT_S", 0.7)
    views = live_views.LiveViews(graph.probe, "front")
    with pytest.raises(ValueError, match="no picture on /?camera/front/image_raw"):
        views.take()
    moving = threading.Event()
    moving.set()
    with _graph_shows(graph, pictures[0], moving):
        with pytest.raises(ValueError, match="the arm moves"):
            for _ in range(10):  # until the graph has found itself
                try:
                    views.take()
                except ValueError as error:
                    if "the arm moves" in str(error):
                        raise
        moving.clear()
        monkeypatch.setattr(live_views, "_WAIT_S", 10.0)
        pixels, hand = views.take()
    assert (pixels == pictures[0].pixels).all() and isinstance(hand, HandPose)
