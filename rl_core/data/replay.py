"""ReplayBuffer: transitions as packed float32 rows, one array for all columns.

One transition is one row, so a batch is a single gather of whole cache lines and every column of the batch is a view of it:
no second copy, and no way for two columns of a transition to come from different writes.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from tensordict import TensorDict
from torch import Tensor

from rl_core.contract import RobotContract
from rl_core.data.columns import Columns
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.shards import load_rows, save_rows
from rl_core.data.training_data import transitions


class ReplayBuffer:
    """Ring of transitions; the oldest are overwritten once `capacity` is reached.

    Any number of threads may add while others gather: a row is written and read under one lock, so no batch ever holds half
    of one write and half of another.

    Args:
        capacity: rows kept.
        columns: column name -> width. `reward` and `terminal` (and any column of width 0) hold one number a row and come
            out as (B,); all others come out as (B, width).
    """

    def __init__(self, capacity: int, columns: Mapping[str, int]) -> None:
        if capacity < 1:
            raise ValueError(f"capacity {capacity}, valid: 1 or more")
        self.capacity = int(capacity)
        self.columns = Columns(columns)
        self.added = 0
        self._saved = 0
        self.rows: NDArray[np.float32] = np.zeros((self.capacity, self.columns.width), np.float32)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    @classmethod
    def from_dataset(cls, dataset: Dataset, contract: RobotContract) -> ReplayBuffer:
        """All transitions of `dataset`, with the observation channels of `contract`, in the order of the episodes.

        `next_observation` never crosses an episode; a truncated episode isn't terminal; the applied action stands in for the
        requested one where they differ by more than 1 % of the range (see `training_data.training_actions`).

        Raises:
            DatasetError: the data are empty or cannot be trained on (see `training_data.require_trainable`).
        """
        values = transitions(dataset, contract)
        widths = {name: value.shape[1] if value.ndim > 1 else 0 for name, value in values.items()}
        replay = cls(len(values["reward"]), widths)
        replay.extend(values)
        return replay

    def add(self, **values: ArrayLike) -> None:
        """Adds one transition; every column must be given.

        Raises:
            DatasetError: a column is missing, unknown, or of another width.
        """
        self._append(self.columns.pack({name: np.asarray(value, np.float32)[None] for name, value in values.items()}))

    def extend(self, values: Mapping[str, ArrayLike]) -> None:
        """Adds n transitions: column name -> (n, width), or (n,) for columns of one number. They stay together in the ring."""
        self._append(self.columns.pack(values))

    def _append(self, rows: NDArray[np.float32]) -> None:
        skipped = max(len(rows) - self.capacity, 0)
        rows = rows[skipped:]
        with self._lock:
            start = (self.added + skipped) % self.capacity
            head = min(len(rows), self.capacity - start)
            self.rows[start : start + head] = rows[:head]
            self.rows[: len(rows) - head] = rows[head:]
            self.added += skipped + len(rows)

    def gather(self, indices: NDArray[np.int64]) -> TensorDict:
        """The rows at `indices` (each in [0, len)), as a TensorDict of flat keys; batch size is the shape of `indices`.

        The tensors are views of one fresh array: they never change afterwards and never alias the buffer.
        """
        return TensorDict(self.gather_columns(indices), batch_size=indices.shape)

    def gather_columns(self, indices: NDArray[np.int64]) -> dict[str, Tensor]:
        """What `gather` returns, as a plain dict: a TensorDict costs as much as a small gather."""
        with self._lock:
            rows = self.rows.take(indices, axis=0)
        return self.columns.views(torch.from_numpy(rows))

    def state_dict(self) -> dict[str, int]:
        """The position of the ring; the rows themselves are saved with `save`."""
        return {"added": self.added}

    def save(self, folder: str | Path) -> Path:
        """Appends the rows added since the last `save` (or `load`) as one shard; always save to the same folder."""
        with self._lock:
            path = save_rows(Path(folder), self.rows, self.added, self._saved, self.columns)
            self._saved = self.added
        return path

    @classmethod
    def load(cls, folder: str | Path, *, added: int | None = None) -> ReplayBuffer:
        """Reads what `save` wrote: the same ring, row for row and at the same position.

        Args:
            folder: where `save` wrote.
            added: the buffer as it was after so many rows (`state_dict()["added"]` of a checkpoint), None for all of it.

        Raises:
            DatasetError: nothing there, damaged, or fewer than `added` rows.
        """
        rows, total, columns = load_rows(Path(folder), added)
        if not len(rows):
            raise DatasetError(f"{folder}: the saved replay has capacity 0")
        replay = cls(1, columns.widths)
        replay.capacity, replay.rows, replay.added, replay._saved = len(rows), rows, total, total
        return replay
