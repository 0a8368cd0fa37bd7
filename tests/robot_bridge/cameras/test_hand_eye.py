"""Lens and pose of a camera, of corners computed with a known truth and of drawn boards."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

from rl_core.camera_calibration import CameraCalibration
from rl_core.training.config import ConfigError
from robot_bridge.cameras.board import Board
from robot_bridge.cameras.calibration import CalibrationError, StoredCalibration
from robot_bridge.cameras.hand_eye import calibrate, find_views
from robot_bridge.cameras.lens import Lens
from tests.robot_bridge.cameras import synthetic
from tests.robot_bridge.cameras.synthetic import BOARD, DISTORTION, MATRIX, SIZE, error, pose

MOUNTS = ("hand", "fixed")
STORED = StoredCalibration(
    width=640,
    height=480,
    calibration=CameraCalibration(
        frame="ee", position=(0.03, -0.05, 0.06), quaternion=(0.0, 0.0, 0.6, 0.8), matrix=(610.0, 612.0, 318.0, 243.0)
    ),
    figures={"views": 15},
)


@pytest.mark.parametrize("mount", MOUNTS)
def test_without_noise_lens_and_pose_are_found_exactly(mount: str) -> None:
    stored = calibrate(synthetic.views(mount), SIZE, mount)  # type: ignore[arg-type]
    shift_mm, turn_deg = error(stored.calibration, mount)
    assert shift_mm < 0.01 and turn_deg < 0.001  # asked for: 1 mm, 0.1 deg
    assert stored.calibration.frame == ("ee" if mount == "hand" else "base")
    assert stored.calibration.matrix == pytest.approx((MATRIX[0, 0], MATRIX[1, 1], MATRIX[0, 2], MATRIX[1, 2]), abs=0.01)
    assert stored.calibration.distortion == pytest.approx(DISTORTION, abs=1e-4)
    assert stored.figures["residual_mm"] < 0.01 and stored.figures["residual_deg"] < 0.001 and stored.figures["reprojection_px"] < 0.001


@pytest.mark.parametrize("mount", MOUNTS)
def test_with_noise_the_pose_is_found_within_the_measured_bound(mount: str) -> None:
    """0.1 px a corner, which subpixel corners reach, and 15 views: at most 0.6 mm and 0.22 deg over 6 seeds; here with room."""
    stored = calibrate(synthetic.views(mount, noise_px=0.1), SIZE, mount)  # type: ignore[arg-type]
    shift_mm, turn_deg = error(stored.calibration, mount)
    assert shift_mm < 1.0 and turn_deg < 0.4
    assert 0.1 < stored.figures["reprojection_px"] < 0.15 and 0.01 < stored.figures["residual_mm"] < 0.3


def test_a_drawn_charuco_board_gives_the_pose_within_half_a_millimetre() -> None:
    views, without, size = find_views(synthetic.drawn("fixed", BOARD), BOARD)
    assert len(views) == 10 and without == [] and size == SIZE
    stored = calibrate(views, size, "fixed")
    shift_mm, turn_deg = error(stored.calibration, "fixed")
    assert shift_mm < 0.5 and turn_deg < 0.1  # found: 0.13 mm, 0.02 deg


@pytest.mark.parametrize("turn", [0.0, math.pi])
def test_a_chessboard_is_found_the_same_way_up_however_it_is_turned(turn: float) -> None:
    board = Board(kind="chessboard", columns=8, rows=5, square_m=0.03)
    middle = pose((-3 * 0.03, -1.5 * 0.03, 0.0), (0.0, 0.0, 0.0))
    place = pose((0.0, 0.0, 0.5), (0.2, 0.0, 0.0)) @ pose((0.0, 0.0, 0.0), (0.0, 0.0, turn)) @ middle
    (picture,) = synthetic.draw(board, [place], "hand")
    found = board.find(picture.pixels)
    assert found is not None
    seen = (MATRIX @ (found[0] @ place[:3, :3].T + place[:3, 3]).T).T
    assert np.abs(seen[:, :2] / seen[:, 2:] - found[1]).max() < 0.3


def test_a_board_that_is_half_hidden_is_used_and_one_that_is_not_there_is_not() -> None:
    pictures = synthetic.drawn("hand", BOARD, count=2)
    half = pictures[0].pixels.copy()
    half[:, :320] = 128
    none = dataclasses.replace(pictures[1], pixels=np.full_like(half, 128))
    views, without, _ = find_views([dataclasses.replace(pictures[0], pixels=half), none], BOARD)
    assert [view.name for view in views] == ["0"] and without == ["1"]
    assert 8 <= len(views[0].board) < 24


def test_sets_that_do_not_determine_the_pose_are_refused() -> None:
    with pytest.raises(CalibrationError, match="seen in 7 views, valid: 8 or more"):
        calibrate(synthetic.views("hand", 7), SIZE, "hand")
    shifted = [pose((0.01 * i - 0.1, 0.005 * i - 0.1, 0.4 + 0.01 * i), (0.2, 0.1, 0.0)) for i in range(10)]
    with pytest.raises(CalibrationError, match=r"turned by 0\.0 deg about one axis and 0\.0 deg about another; valid: 5 deg"):
        calibrate(synthetic.views("hand", boards=shifted), SIZE, "hand")
    one_axis = [pose((-0.1, -0.1, 0.4), (0.2, 0.0, 0.0)) @ pose((0.0, 0.0, 0.0), (0.0, 0.0, 0.15 * i)) for i in range(10)]
    with pytest.raises(CalibrationError, match=r"turned by \d\d\.\d deg about one axis and 0\.0 deg about another"):
        calibrate(synthetic.views("fixed", boards=one_axis), SIZE, "fixed")


def test_pictures_of_two_sizes_or_none_are_refused() -> None:
    (picture,) = synthetic.drawn("hand", BOARD, count=1)
    with pytest.raises(CalibrationError, match="320x240, 640x480"):
        find_views([picture, dataclasses.replace(picture, pixels=picture.pixels[::2, ::2])], BOARD)
    with pytest.raises(CalibrationError, match="pictures of none"):
        find_views([], BOARD)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "chessboard", "columns": 8, "rows": 6}, "upside down"),
        ({"marker_m": 0.03}, "marker_m 0.03, valid: below"),
        ({"dictionary": "5X5"}, "DICT_5X5_100"),
        ({"square_m": 0.0}, "square_m"),
        ({"rows": 2}, "rows: 2"),
    ],
)
def test_a_board_that_cannot_be_used_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises((CalibrationError, ConfigError), match=message):
        Board(**values)  # type: ignore[arg-type]


def test_the_file_gives_the_calibration_back_and_a_wrong_one_says_what_is_wrong(tmp_path: Path) -> None:
    stored = STORED
    file = tmp_path / "camera.json"
    stored.save(file)
    assert StoredCalibration.load(file) == stored
    data = json.loads(file.read_text())
    cases = [
        ("{", "JSON"),
        (json.dumps({**data, "width": 0}), "0x480"),
        (json.dumps({key: value for key, value in data.items() if key != "calibration"}), "KeyError: 'calibration'"),
        (json.dumps({**data, "calibration": {**data["calibration"], "quaternion": [0, 0, 0, 2]}}), "norm 2"),
        (json.dumps({**data, "calibration": {**data["calibration"], "lens": 3}}), "lens"),
    ]
    for text, message in cases:
        file.write_text(text)
        with pytest.raises(CalibrationError, match=message):
            StoredCalibration.load(file)
    with pytest.raises(CalibrationError, match="No such file"):
        StoredCalibration.load(tmp_path / "nosuch.json")


def test_a_lens_is_scaled_as_a_picture_that_is_resized() -> None:
    """A point that falls on the edge between two pixels does so after pairs of pixels were made one."""
    lens = Lens(width=8, height=6, matrix=(10.0, 12.0, 3.5, 2.5))
    assert lens.scaled(4, 3).matrix == (5.0, 6.0, 1.5, 1.0)
    assert lens.scaled(8, 6) == lens


def test_a_calibration_fits_pictures_of_the_same_shape_alone() -> None:
    stored = STORED
    own = stored.calibration
    assert stored.for_pictures((640, 480), (640, 480)) == own
    small = stored.for_pictures((1280, 960), (128, 128))
    assert small.matrix[:2] == pytest.approx((own.matrix[0] / 5, own.matrix[1] * 128 / 480)) and small.position == own.position
    with pytest.raises(CalibrationError, match="made of pictures of 640x480; the camera gives 1280x720"):
        stored.for_pictures((1280, 720), (128, 128))
    assert stored.for_pictures((1280, 720), (640, 480)) == own  # made of what is published
