"""FrameStore: uint8 pictures in a memory-mapped file, addressed by index.

A replay row holds the index of a picture as a number. The picture after it lies at the next index, so it is never stored twice.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from rl_core.data.atomic import write_atomically
from rl_core.data.damage import describe
from rl_core.data.episode import Dataset, DatasetError

MAX_FRAMES = 2**24
"""Indices travel as float32 columns of a replay, which holds whole numbers exactly up to here."""


class FrameStore:
    """A file of at most `capacity` pictures of one shape; `frames.json` beside it says how many there are.

    Any number of threads may append; a picture can be read once `append` has returned its index.

    Args:
        folder: holds `frames.u8` and `frames.json`; an older store there is opened and appended to.
        shape: (height, width, channels).
        capacity: pictures that fit; the file is sparse until they are written.

    Raises:
        DatasetError: the folder holds pictures of another shape or capacity, or a capacity above 2^24.
    """

    def __init__(self, folder: str | Path, shape: tuple[int, int, int], capacity: int) -> None:
        if not 1 <= capacity <= MAX_FRAMES:
            raise DatasetError(f"capacity {capacity}, valid: 1..{MAX_FRAMES}")
        self.folder, self.shape, self.capacity = Path(folder), tuple(shape), capacity
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._count = 0
        header = self.folder / "frames.json"
        if header.is_file():
            self._count = self._read_header(header)
        file = self.folder / "frames.u8"
        self._frames = np.memmap(file, dtype=np.uint8, mode="r+" if file.is_file() else "w+", shape=(capacity, *shape))
        if not header.is_file():
            self.flush()

    @classmethod
    def from_dataset(cls, folder: str | Path, dataset: Dataset, channel: str) -> tuple[FrameStore, NDArray[np.int64], NDArray[np.int64]]:
        """All pictures of an image channel, T + 1 an episode.

        Returns:
            The store, and for every transition, in `ReplayBuffer.from_dataset`'s order, the index of the picture before it and
            of the picture after it (which is always one more).
        """
        described = dataset.contract.channel(channel)
        if described.kind != "image" or len(described.shape) != 3:
            raise DatasetError(f"channel {channel!r} is {described.kind}, valid: image")
        height, width, channels = described.shape
        store = cls(folder, (height, width, channels), dataset.steps + len(dataset))
        first = [store.append(episode.observations[channel])[0] for episode in dataset.episodes]
        store.flush()
        before = np.concatenate([np.arange(f, f + len(e)) for f, e in zip(first, dataset.episodes, strict=True)])
        return store, before, before + 1

    def __len__(self) -> int:
        return self._count

    def append(self, frames: ArrayLike) -> NDArray[np.int64]:
        """Stores pictures (n, height, width, channels) uint8 one behind the other and returns their indices (n,).

        Raises:
            DatasetError: another shape or type, or the store is full.
        """
        array = np.asarray(frames)
        if array.dtype != np.uint8 or array.shape[1:] != self.shape:
            raise DatasetError(f"frames of type {array.dtype} and shape {array.shape}; valid: uint8 (n, {', '.join(map(str, self.shape))})")
        with self._lock:
            start = self._count
            if start + len(array) > self.capacity:
                raise DatasetError(f"{self.folder}: {start} of {self.capacity} frames are there, {len(array)} more don't fit")
            self._frames[start : start + len(array)] = array
            self._count = start + len(array)
        return np.arange(start, start + len(array))

    def gather(self, indices: ArrayLike | Tensor) -> Tensor:
        """Pictures (..., height, width, channels) uint8 at `indices` (...), float columns of a replay included.

        Raises:
            DatasetError: an index without a picture.
        """
        rows = np.asarray(indices).astype(np.int64)
        if rows.size and not (0 <= rows.min() and rows.max() < self._count):
            raise DatasetError(f"frame index {rows.min()}..{rows.max()}, valid: 0..{self._count - 1}")
        return torch.from_numpy(np.asarray(self._frames[rows]))

    def flush(self) -> None:
        """Brings pictures and count to the disk; after a crash the store opens as it was at the last flush."""
        with self._lock:
            self._frames.flush()
            header = {"shape": list(self.shape), "capacity": self.capacity, "count": self._count}
        with write_atomically(self.folder / "frames.json") as file:
            file.write(json.dumps(header).encode())

    def _read_header(self, file: Path) -> int:
        try:
            header = json.loads(file.read_text())
            found = tuple(header["shape"]), header["capacity"]
            count = int(header["count"])
        except (ValueError, KeyError, TypeError) as error:
            raise DatasetError(f"{file}: not readable: {describe(error)}") from error
        if found != (self.shape, self.capacity):
            raise DatasetError(f"{file}: shape and capacity are {found}, asked for are {(self.shape, self.capacity)}")
        return count
