"""Board: the flat pattern that is held before a camera to calibrate it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rl_core.training.config import Config
from robot_bridge.cameras.calibration import CalibrationError

Array = NDArray[np.float64]

_FEWEST_CORNERS = 8


@dataclass(frozen=True, kw_only=True)
class Board(Config):
    """A printed pattern, measured with a ruler."""

    kind: Literal["charuco", "chessboard"] = "charuco"
    """charuco: a chessboard with markers, which may be partly hidden and shows which way up it is; chessboard: without."""
    columns: int = 7
    """Squares in a row (squares, not the corners between them)."""
    rows: int = 5
    """Squares in a column."""
    square_m: float = 0.03
    """Side of a square, m."""
    marker_m: float = 0.022
    """charuco: side of a marker, m."""
    dictionary: str = "DICT_5X5_100"
    """charuco: OpenCV's name of the markers' dictionary."""

    def __post_init__(self) -> None:
        import cv2

        self.require_least(columns=4, rows=4)
        self.require_above_zero("square_m", "marker_m")
        if self.kind == "chessboard" and (self.columns + self.rows) % 2 == 0:
            wrong = f"chessboard of {self.columns}x{self.rows} squares looks the same upside down"
            raise CalibrationError(f"{wrong}; valid: one number odd, the other even, or a charuco board")
        if self.kind == "charuco":
            if self.marker_m >= self.square_m:
                raise CalibrationError(f"marker_m {self.marker_m}, valid: below square_m, {self.square_m}")
            known = sorted(name for name in dir(cv2.aruco) if name.startswith("DICT_"))
            if self.dictionary not in known:
                raise CalibrationError(f"dictionary {self.dictionary!r}, valid: {', '.join(known)}")

    def charuco(self) -> Any:
        """The `cv2.aruco.CharucoBoard`."""
        import cv2

        dictionary = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, self.dictionary))
        return cv2.aruco.CharucoBoard((self.columns, self.rows), self.square_m, self.marker_m, dictionary)

    def find(self, pixels: NDArray[np.uint8]) -> tuple[Array, Array] | None:
        """The board's corners in (H, W, 3) RGB pixels.

        Returns:
            (N, 3) places on the board, m, and (N, 2) pixels; None where the board is not seen, or too little of it.
        """
        import cv2

        grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
        return self._find_charuco(grey) if self.kind == "charuco" else self._find_chessboard(grey)

    def _find_charuco(self, grey: Any) -> tuple[Array, Array] | None:
        import cv2

        board = self.charuco()
        corners, ids, _, _ = cv2.aruco.CharucoDetector(board).detectBoard(grey)
        if ids is None or len(ids) < _FEWEST_CORNERS:
            return None
        there = np.asarray(board.getChessboardCorners(), np.float64)[ids.ravel()]
        return there, np.asarray(corners, np.float64).reshape(-1, 2)

    def _find_chessboard(self, grey: Any) -> tuple[Array, Array] | None:
        import cv2

        size = self.columns - 1, self.rows - 1
        there, corners = cv2.findChessboardCornersSB(grey, size, flags=cv2.CALIB_CB_ACCURACY)
        if not there:
            return None
        grid = np.asarray(corners, np.float64).reshape(size[1], size[0], 2)
        # The first square inside the corners is dark, the last is light; where it is the other way round the board stands upside down.
        if _brightness(grey, grid[:2, :2]) > _brightness(grey, grid[-2:, -2:]):
            grid = grid[::-1, ::-1]
        y, x = np.mgrid[: size[1], : size[0]] * self.square_m
        return np.stack((x.ravel(), y.ravel(), np.zeros(x.size)), axis=1), np.ascontiguousarray(grid.reshape(-1, 2))


def _brightness(grey: Any, corners: Array) -> float:
    """At the middle of the square between (2, 2, 2) corners."""
    x, y = corners.mean(axis=(0, 1))
    return float(grey[round(y), round(x)])
