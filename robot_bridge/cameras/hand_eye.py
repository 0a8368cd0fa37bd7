"""Lens and pose of a camera out of views of a board: `cv2.calibrateCamera`, then `cv2.calibrateHandEye`, then both refined together.

With A_i the hand in the base frame (camera on the hand) or the base in the hand's frame (camera fixed, board on the hand), X the camera
in the hand's (or the base) frame, T_i the board in the camera's frame, and Y the board in the base (or the hand's) frame: A_i X T_i = Y
for every view i.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from rl_core.camera_calibration import CameraCalibration
from robot_bridge.cameras.board import Board
from robot_bridge.cameras.calibration import CalibrationError, StoredCalibration
from robot_bridge.cameras.views import HandPose, Picture

Array = NDArray[np.float64]
Mount = Literal["hand", "fixed"]

FEWEST_VIEWS = 8
FEWEST_DEG = 5.0


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """The board's corners in one picture: (N, 3) on the board, m; (N, 2) pixels; and the hand's pose."""

    name: str
    board: Array
    pixels: Array
    hand: HandPose


def find_views(pictures: Sequence[Picture], board: Board) -> tuple[list[View], list[str], tuple[int, int]]:
    """The views in which the board is seen, the names of the others, and (width, height) of all pictures.

    Raises:
        CalibrationError: there is no picture, or not all are of one size.
    """
    sizes = {(picture.pixels.shape[1], picture.pixels.shape[0]) for picture in pictures}
    if len(sizes) != 1:
        found = ", ".join(f"{width}x{height}" for width, height in sorted(sizes)) or "none"
        raise CalibrationError(f"pictures of {found} pixels; valid: {FEWEST_VIEWS} pictures or more, all of one size")
    views: list[View] = []
    without: list[str] = []
    for picture in pictures:
        corners = board.find(picture.pixels)
        if corners is None:
            without.append(picture.name)
        else:
            views.append(View(name=picture.name, board=corners[0], pixels=corners[1], hand=picture.hand))
    return views, without, sizes.pop()


def calibrate(views: Sequence[View], size: tuple[int, int], mount: Mount) -> StoredCalibration:
    """Lens, and pose of the camera on the hand (`hand`) or of one that stands (`fixed`, the board is on the hand).

    The third radial term is left at 0. `figures` has, over all views: `reprojection_px`, root mean square distance of the corners from
    where lens and board put them; `residual_mm`, `residual_deg`, root mean square difference of the board's pose as the camera sees it
    from A_i^-1 X^-1 Y; `largest_mm`, `largest_deg`.

    Args:
        views: of one board at rest.
        size: (width, height) of the pictures.
        mount: where the camera is.

    Raises:
        CalibrationError: too few views, or the hand was not turned about two axes, so that the pose is not determined.
    """
    _check(views)
    reprojection_px, lens, distortion, seen = _lens(views, size)
    hands = [_pose(view.hand.position, Rotation.from_quat(view.hand.quaternion)) for view in views]
    moved = hands if mount == "hand" else [np.linalg.inv(hand) for hand in hands]
    camera, board = _refined(views, moved, *_hand_eye(moved, seen), lens, distortion)
    shifts, turns = _differences(views, moved, seen, camera, board)
    figures = {
        "views": len(views),
        "reprojection_px": reprojection_px,
        "residual_mm": _rms(shifts) * 1e3,
        "residual_deg": math.degrees(_rms(turns)),
        "largest_mm": max(shifts) * 1e3,
        "largest_deg": math.degrees(max(turns)),
    }
    calibration = CameraCalibration(
        frame="ee" if mount == "hand" else "base",
        position=tuple(camera[:3, 3].tolist()),
        quaternion=tuple(Rotation.from_matrix(camera[:3, :3]).as_quat(canonical=True).tolist()),
        matrix=(lens[0, 0], lens[1, 1], lens[0, 2], lens[1, 2]),
        distortion=tuple(distortion.tolist()),
    )
    return StoredCalibration(width=size[0], height=size[1], calibration=calibration, figures=figures)


def _check(views: Sequence[View]) -> None:
    if len(views) < FEWEST_VIEWS:
        raise CalibrationError(f"the board is seen in {len(views)} views, valid: {FEWEST_VIEWS} or more")
    hands = Rotation.from_quat([view.hand.quaternion for view in views])
    turns = np.concatenate([(hands[i].inv() * hands[i + 1 :]).as_rotvec() for i in range(len(views) - 1)])
    # Root mean square turn about the axis they turned about most, the next and the last, between all pairs of views.
    first, second, _ = np.degrees(np.linalg.svd(turns, compute_uv=False) / math.sqrt(len(turns)))
    if second < FEWEST_DEG:
        found = f"between two views the hand turned by {first:.1f} deg about one axis and {second:.1f} deg about another"
        raise CalibrationError(
            f"{found}; valid: {FEWEST_DEG:.0f} deg or more about each of two axes, or the camera's pose is not determined"
        )


def _lens(views: Sequence[View], size: tuple[int, int]) -> tuple[float, Array, Array, list[Array]]:
    """Reprojection error, (3, 3) camera matrix, (5,) distortion, and the (4, 4) pose of the board in the camera's frame, per view."""
    import cv2

    boards, pixels = ([np.float32(getattr(view, field)) for view in views] for field in ("board", "pixels"))
    error, matrix, distortion, turns, shifts = cv2.calibrateCamera(boards, pixels, size, None, None, flags=cv2.CALIB_FIX_K3)  # type: ignore[call-overload]
    seen = [_pose(shift.ravel(), Rotation.from_rotvec(turn.ravel())) for turn, shift in zip(turns, shifts, strict=True)]
    return float(error), matrix, distortion.ravel(), seen


def _hand_eye(moved: Sequence[Array], seen: Sequence[Array]) -> tuple[Array, Array]:
    """X and, as the mean over the views, Y."""
    import cv2

    turns, shifts = zip(*[([p[:3, :3] for p in poses], [p[:3, 3] for p in poses]) for poses in (moved, seen)], strict=True)
    rotation, position = cv2.calibrateHandEye(turns[0], shifts[0], turns[1], shifts[1], method=cv2.CALIB_HAND_EYE_PARK)
    camera = _pose(np.asarray(position, np.float64).ravel(), Rotation.from_matrix(rotation))
    boards = np.stack([hand @ camera @ there for hand, there in zip(moved, seen, strict=True)])
    return camera, _pose(boards[:, :3, 3].mean(axis=0), Rotation.from_matrix(boards[:, :3, :3]).mean())


def _refined(
    views: Sequence[View], moved: Sequence[Array], camera: Array, board: Array, lens: Array, distortion: Array
) -> tuple[Array, Array]:
    """X and Y with the least sum of squared distances, in pixels, between all corners and where X, Y and the hand put them."""
    import cv2

    def distances(values: Array) -> Array:
        x, y = (_pose(part[3:], Rotation.from_rotvec(part[:3])) for part in (values[:6], values[6:]))
        found = []
        for view, hand in zip(views, moved, strict=True):
            there = np.linalg.inv(hand @ x) @ y
            turn = Rotation.from_matrix(there[:3, :3]).as_rotvec()
            found.append(cv2.projectPoints(view.board, turn, there[:3, 3], lens, distortion)[0].reshape(-1, 2) - view.pixels)
        return np.concatenate(found).ravel()

    start = np.concatenate([part for pose in (camera, board) for part in (Rotation.from_matrix(pose[:3, :3]).as_rotvec(), pose[:3, 3])])
    best = least_squares(distances, start, x_scale=np.tile([0.1, 0.1, 0.1, 0.01, 0.01, 0.01], 2)).x
    return _pose(best[3:6], Rotation.from_rotvec(best[:3])), _pose(best[9:], Rotation.from_rotvec(best[6:9]))


def _differences(
    views: Sequence[View], moved: Sequence[Array], seen: Sequence[Array], camera: Array, board: Array
) -> tuple[list[float], list[float]]:
    """Per view, how far the board's middle (m) and its turn (rad) as the camera sees them are from A^-1 X^-1 Y."""
    middle = np.append(np.concatenate([view.board for view in views]).mean(axis=0), 1.0)
    expected = [np.linalg.inv(hand @ camera) @ board for hand in moved]
    shifts = [float(np.linalg.norm((there - found) @ middle)) for there, found in zip(expected, seen, strict=True)]
    turns = [float(Rotation.from_matrix(there[:3, :3] @ found[:3, :3].T).magnitude()) for there, found in zip(expected, seen, strict=True)]
    return shifts, turns


def _pose(position: Array, rotation: Rotation) -> Array:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation.as_matrix(), position
    return pose


def _rms(values: Sequence[float]) -> float:
    return math.sqrt(float(np.mean(np.square(values))))
