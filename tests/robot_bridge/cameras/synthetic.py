"""Views of a board with everything known: corners computed, or pictures drawn."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from robot_bridge.cameras.board import Board
from robot_bridge.cameras.hand_eye import View
from robot_bridge.cameras.views import HandPose, Picture

Array = NDArray[np.float64]

SIZE = (640, 480)
MATRIX = np.array([[610.0, 0.0, 318.0], [0.0, 612.0, 243.0], [0.0, 0.0, 1.0]])
DISTORTION = np.array([-0.1, 0.05, 0.001, -0.0005, 0.0])
BOARD = Board(kind="charuco", columns=7, rows=5, square_m=0.03, marker_m=0.022)


def pose(position: tuple[float, float, float], rotvec: tuple[float, float, float]) -> Array:
    """(4, 4)."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = Rotation.from_rotvec(rotvec).as_matrix(), position
    return matrix


CAMERA = {"hand": pose((0.03, -0.05, 0.06), (0.1, -0.05, 1.5)), "fixed": pose((1.1, 0.2, 0.6), (-1.9, 0.4, 0.3))}
"""Of the camera on the hand, or in the base frame."""


def seen_boards(views: int, rng: np.random.Generator) -> list[Array]:
    """Places of the board before the camera: all over the picture, tilted by up to 0.5 rad, turned about its normal by up to 1 rad."""
    found = []
    middle = pose((-BOARD.columns * BOARD.square_m / 2, -BOARD.rows * BOARD.square_m / 2, 0.0), (0.0, 0.0, 0.0))
    for _ in range(views):
        x, y, z = rng.uniform((-0.07, -0.05, 0.3), (0.07, 0.05, 0.45))
        tilt = pose((x, y, z), tuple(rng.uniform(-0.5, 0.5, 2)) + (0.0,))
        found.append(tilt @ pose((0.0, 0.0, 0.0), (0.0, 0.0, rng.uniform(-1.0, 1.0))) @ middle)
    return found


def hands(mount: str, boards: list[Array]) -> list[HandPose]:
    """Where the hand is, so that the camera sees the board there."""
    at_rest = pose((0.5, 0.1, 0.02), (0.0, 0.0, 0.4)) if mount == "hand" else pose((0.0, 0.0, 0.1), (0.3, 0.1, 0.0))
    found = []
    for board in boards:
        moved = at_rest @ np.linalg.inv(board) @ np.linalg.inv(CAMERA[mount])  # A = Y T^-1 X^-1
        hand = moved if mount == "hand" else np.linalg.inv(moved)
        found.append(HandPose(position=hand[:3, 3], quaternion=Rotation.from_matrix(hand[:3, :3]).as_quat()))
    return found


def views(mount: str, count: int = 15, *, noise_px: float = 0.0, seed: int = 0, boards: list[Array] | None = None) -> list[View]:
    """Corners where the camera sees them, with normal noise."""
    rng = np.random.default_rng(seed)
    boards = seen_boards(count, rng) if boards is None else boards
    corners = np.float64(BOARD.charuco().getChessboardCorners())
    found = []
    for i, (board, hand) in enumerate(zip(boards, hands(mount, boards), strict=True)):
        turn = Rotation.from_matrix(board[:3, :3]).as_rotvec()
        pixels = cv2.projectPoints(corners, turn, board[:3, 3], MATRIX, DISTORTION)[0].reshape(-1, 2)
        found.append(View(name=str(i), board=corners, pixels=pixels + rng.normal(0, noise_px, pixels.shape), hand=hand))
    return found


def drawn(mount: str, board: Board, count: int = 10, seed: int = 0) -> list[Picture]:
    """Pictures of the board all over the place."""
    return draw(board, seen_boards(count, np.random.default_rng(seed)), mount)


def draw(board: Board, boards: list[Array], mount: str) -> list[Picture]:
    """Pictures of the board at its places, as a straight lens shows it, drawn at twice the size and made small."""
    fine, margin, side = 2, 1, 60  # pixels of the picture per pixel, squares of white around the board, pixels a square
    if board.kind == "charuco":
        flat = board.charuco().generateImage((board.columns * side, board.rows * side))
    else:
        rows, columns = np.mgrid[: board.rows * side, : board.columns * side] // side
        flat = np.where((rows + columns) % 2 == 0, 0, 255).astype(np.uint8)
    flat = cv2.copyMakeBorder(flat, *[margin * side] * 4, cv2.BORDER_CONSTANT, value=255)
    # Pixel -> metres on the board, whose origin is the corner of its first square; for a chessboard the first corner inside.
    first = margin + (1 if board.kind == "chessboard" else 0)
    scale = board.square_m / side
    metres = np.array([[scale, 0, (0.5 - first * side) * scale], [0, scale, (0.5 - first * side) * scale], [0, 0, 1]])
    enlarged = np.array([[fine, 0, (fine - 1) / 2], [0, fine, (fine - 1) / 2], [0, 0, 1]])
    found = []
    for i, (place, hand) in enumerate(zip(boards, hands(mount, boards), strict=True)):
        plane = MATRIX @ place[:3, [0, 1, 3]]
        size = SIZE[0] * fine, SIZE[1] * fine
        large = cv2.warpPerspective(flat, enlarged @ plane @ metres, size, flags=cv2.INTER_LINEAR, borderValue=128)
        grey = cv2.resize(large, SIZE, interpolation=cv2.INTER_AREA)
        found.append(Picture(name=str(i), pixels=np.repeat(grey[..., None], 3, axis=2), hand=hand))
    return found


def error(found: object, mount: str) -> tuple[float, float]:
    """Of a calibration's pose against the truth: mm, deg."""
    truth = CAMERA[mount]
    shift = np.linalg.norm(np.array(found.position) - truth[:3, 3]) * 1e3  # type: ignore[attr-defined]
    turn = Rotation.from_quat(found.quaternion) * Rotation.from_matrix(truth[:3, :3]).inv()  # type: ignore[attr-defined]
    return float(shift), float(np.degrees(turn.magnitude()))
