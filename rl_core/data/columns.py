"""Columns: named slices of a packed float32 row."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from rl_core.data.episode import DatasetError

SCALARS = ("reward", "terminal")
"""Columns that hold one number a row whatever width they were declared with, so that (B,) never meets (B, 1)."""


class Columns:
    """Where each column lies in a row.

    Args:
        widths: column name -> numbers in it; 0 (and always `reward`, `terminal`) is one number without an axis of its own.
    """

    def __init__(self, widths: Mapping[str, int]) -> None:
        if not widths or any(width < 0 for width in widths.values()):
            raise DatasetError(f"columns {dict(widths)}: at least one is needed, each of width 0 or more")
        wide = {name: width for name, width in widths.items() if name in SCALARS and width > 1}
        if wide:
            raise DatasetError(f"columns {wide}: {SCALARS} hold one number a row")
        self.widths = {name: 0 if name in SCALARS else int(width) for name, width in widths.items()}
        self.slices: dict[str, slice] = {}
        self.width = 0
        for name, width in self.widths.items():
            self.slices[name] = slice(self.width, self.width + max(width, 1))
            self.width += max(width, 1)
        self._scalars = tuple(name for name, width in self.widths.items() if width == 0)
        self._split = [part.stop - part.start for part in self.slices.values()]

    def pack(self, values: Mapping[str, ArrayLike]) -> NDArray[np.float32]:
        """Rows (n, width) from column name -> (n, column width) or (n,)."""
        if values.keys() != self.widths.keys():
            raise DatasetError(f"columns given {sorted(values)}, valid: exactly {sorted(self.widths)}")
        arrays = {name: np.asarray(value, np.float32) for name, value in values.items()}
        count = len(next(iter(arrays.values())))
        rows = np.empty((count, self.width), np.float32)
        for name, part in self.slices.items():
            size = part.stop - part.start
            if arrays[name].size != count * size or len(arrays[name]) != count:
                raise DatasetError(f"column {name!r}: shape {arrays[name].shape}, valid: ({count}, {size})")
            rows[:, part] = arrays[name].reshape(count, size)
        return rows

    def views(self, rows: Tensor) -> dict[str, Tensor]:
        """Column name -> view of `rows`: (..., column width), or (...) for columns of one number."""
        parts = dict(zip(self.widths, rows.split_with_sizes(self._split, -1), strict=True))
        for name in self._scalars:
            parts[name] = parts[name].squeeze(-1)
        return parts
