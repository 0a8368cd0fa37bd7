"""How often each cell of a plane has been visited."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


class CellCoverage:
    """Counts visits of a box's cells x cells cells.

    Args:
        low: lower corner (2,).
        high: upper corner (2,).
        cells: cells along each axis.

    Attributes:
        visits: (cells, cells) int64, first axis x, second y.
    """

    def __init__(self, low: ArrayLike, high: ArrayLike, cells: int = 20) -> None:
        self.low: NDArray[np.float64] = np.asarray(low, np.float64)
        self.high: NDArray[np.float64] = np.asarray(high, np.float64)
        self.visits: NDArray[np.int64] = np.zeros((cells, cells), np.int64)

    def add(self, points: ArrayLike) -> None:
        """Counts points (..., 2). A point on the upper edge belongs to the last cell; points outside of the box are not counted.

        Raises:
            ValueError: points that are not pairs.
        """
        pairs = np.asarray(points, np.float64)
        if pairs.ndim == 0 or pairs.shape[-1] != 2:
            raise ValueError(f"points of shape {pairs.shape}, valid: (..., 2)")
        pairs = pairs.reshape(-1, 2)
        pairs = pairs[((pairs >= self.low) & (pairs <= self.high)).all(axis=1)]
        cells = len(self.visits)
        index = np.minimum(((pairs - self.low) / (self.high - self.low) * cells).astype(np.int64), cells - 1)
        np.add.at(self.visits, (index[:, 0], index[:, 1]), 1)

    @property
    def share(self) -> float:
        """Visited share of the cells, in [0, 1]."""
        return float((self.visits > 0).mean())
