"""Index: features of a corpus on disk, half precision, memory-mapped; it grows by appending and is never rebuilt.

    FOLDER/index.json         {format_version, size, embedder}
    FOLDER/features.f16       rows of `size` little-endian float16, trajectories one behind the other
    FOLDER/trajectories.txt   a line a trajectory: its facts as JSON (frames, CRC32 of its rows, source, demo, ...) and the line's CRC32

Rows reach the disk before their line does. What a crash leaves beyond the last whole line is cut off when the index is opened to grow.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.data.atomic import write_atomically
from rl_core.data.damage import describe
from rl_core.strap.sdtw import RetrievalError

FORMAT_VERSION = 1
_HEADER, _FEATURES, _TABLE = "index.json", "features.f16", "trajectories.txt"
_UNSAVED = 64
"""Trajectories added between two savings: what a crash costs at most."""


@dataclass(frozen=True, kw_only=True)
class Indexed:
    """One trajectory of an index.

    Attributes:
        frames: rows of features, one a step.
        crc: CRC32 of the rows.
        source: dataset it is from.
        demo: its name there.
        uuid: of the episode.
        lang: its task in words.
        stamp: size and time of change (ns) of the file it was read from.
    """

    frames: int
    crc: int
    source: str = ""
    demo: str = ""
    uuid: str = ""
    lang: str = ""
    stamp: tuple[int, ...] = ()


class Index:
    """An index opened to be searched: `Trajectories` of `rl_core.strap.search`.

    Raises:
        RetrievalError: no index, one of another version, or a damaged one; names the file and what is wrong.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        header = _read_header(folder)
        self.size: int = header["size"]
        self.embedder: dict[str, Any] = header["embedder"]
        self.trajectories, _ = _read_table(folder / _TABLE)
        self.lengths = np.array([trajectory.frames for trajectory in self.trajectories], np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self.lengths)])
        found, needed = _bytes(folder / _FEATURES), int(self._starts[-1]) * self.size * 2
        if found < needed:
            raise RetrievalError(f"{folder / _FEATURES}: truncated: {found} bytes, {needed} are listed in {_TABLE}; valid: build it anew")

    def __len__(self) -> int:
        return len(self.trajectories)

    def block(self, first: int, last: int) -> NDArray[np.float16]:
        """Rows of the trajectories first..last-1, mapped from the disk: dropped from memory with the array."""
        rows = int(self._starts[last] - self._starts[first])
        if not rows:
            return np.empty((0, self.size), np.float16)
        offset = int(self._starts[first]) * self.size * 2
        mapped = np.memmap(self.folder / _FEATURES, dtype="<f2", mode="r", offset=offset, shape=(rows, self.size))
        return np.asarray(mapped)

    def verify(self, progress: Callable[[int], None] = lambda done: None) -> None:
        """Reads everything once and compares it with its checksums.

        Raises:
            RetrievalError: rows that are not what was written; names the trajectory.
        """
        for number, trajectory in enumerate(self.trajectories):
            if zlib.crc32(self.block(number, number + 1).data) != trajectory.crc:
                where = f"trajectory {number} ({trajectory.source} {trajectory.demo})"
                raise RetrievalError(f"{self.folder / _FEATURES}: damaged: {where} has another checksum; valid: build the index anew")
            progress(1)


class IndexWriter:
    """Opens an index to grow it, or makes one. A context manager: what was added is saved at the end of the block, after an error too.

    Args:
        folder: made if needed.
        size: of the features.
        embedder: its spec; an index there already must have an equal one.

    Raises:
        RetrievalError: the index there has another size, embedder or version, or is damaged; or another process is writing to it.
    """

    def __init__(self, folder: Path, size: int, embedder: Mapping[str, Any]) -> None:
        self.folder, self.size = folder, size
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / _HEADER).is_file():
            header = {"format_version": FORMAT_VERSION, "size": size, "embedder": dict(embedder)}
            with write_atomically(folder / _HEADER) as file:
                file.write(json.dumps(header).encode())
        held = _read_header(folder)
        if (held["size"], held["embedder"]) != (size, dict(embedder)):
            raise RetrievalError(f"{folder}: an index of other features; there: {_short(held['embedder'])}, now: {_short(embedder)}")
        self._table = open(folder / _TABLE, "ab")
        self._features = open(folder / _FEATURES, "ab")
        try:
            fcntl.flock(self._table, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.trajectories, whole = _read_table(folder / _TABLE)
            needed = sum(trajectory.frames for trajectory in self.trajectories) * size * 2
            if _bytes(folder / _FEATURES) < needed:
                raise RetrievalError(
                    f"{folder / _FEATURES}: truncated: {_bytes(folder / _FEATURES)} bytes, {needed} are listed in {_TABLE}"
                )
            self._table.truncate(whole)
            self._features.truncate(needed)
        except BaseException as error:
            self._table.close()
            self._features.close()
            if isinstance(error, BlockingIOError):
                raise RetrievalError(f"{folder}: another process is writing to it; valid: one at a time") from error
            raise
        self._waiting: list[bytes] = []

    def add(self, features: NDArray[Any], **facts: Any) -> None:
        """Appends one trajectory (T, size); `facts` are fields of `Indexed`.

        Raises:
            RetrievalError: no rows, another width, or numbers that are not finite or beyond half precision.
        """
        if features.ndim != 2 or not len(features) or features.shape[1] != self.size:
            raise RetrievalError(f"{facts}: features of shape {features.shape}, valid: (1 frame or more, {self.size})")
        with np.errstate(over="ignore"):
            rows = np.ascontiguousarray(features, dtype="<f2")
        if not np.isfinite(rows).all():
            raise RetrievalError(f"{facts}: features up to {np.abs(features).max():.3g}; valid: finite, within half precision, 65504")
        trajectory = Indexed(frames=len(rows), crc=zlib.crc32(rows.data), **facts)
        self._features.write(rows.data)
        text = json.dumps(asdict(trajectory)).encode()
        self._waiting.append(text + b" %08x\n" % zlib.crc32(text))
        self.trajectories.append(trajectory)
        if len(self._waiting) >= _UNSAVED:
            self.save()

    def save(self) -> None:
        """Brings what was added to the disk."""
        for file, lines in ((self._features, []), (self._table, self._waiting)):
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        self._waiting = []

    def __enter__(self) -> IndexWriter:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.save()
        finally:
            self._table.close()
            self._features.close()


def _read_header(folder: Path) -> dict[str, Any]:
    file = folder / _HEADER
    if not file.is_file():
        raise RetrievalError(f"{folder}: no {_HEADER}; valid: a folder that an index was built in")
    try:
        header = json.loads(file.read_text())
        version, size, embedder = header["format_version"], header["size"], header["embedder"]
    except (ValueError, KeyError, TypeError) as error:
        raise RetrievalError(f"{file}: not readable: {describe(error)}") from error
    if version != FORMAT_VERSION:
        raise RetrievalError(f"{file}: format_version {version!r}; this Armstack reads version {FORMAT_VERSION}")
    if not isinstance(size, int) or size < 1 or not isinstance(embedder, dict):
        raise RetrievalError(f"{file}: size {size!r}, embedder {type(embedder).__name__}; valid: a whole number above 0, an object")
    return header


def _read_table(file: Path) -> tuple[list[Indexed], int]:
    """Its trajectories, and the bytes they take: a last line that a crash cut short does not count."""
    if not file.is_file():
        return [], 0
    trajectories: list[Indexed] = []
    whole = 0
    lines = file.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines):
        text, _, crc = line.rstrip(b"\n").rpartition(b" ")
        if line.endswith(b"\n") and crc == b"%08x" % zlib.crc32(text):
            facts = json.loads(text)
            trajectories.append(Indexed(**{**facts, "stamp": tuple(facts["stamp"])}))
            whole += len(line)
        elif number < len(lines) - 1:
            raise RetrievalError(f"{file}: line {number + 1} is damaged; valid: build the index anew")
    return trajectories, whole


def _bytes(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


def _short(embedder: Mapping[str, Any]) -> str:
    text = json.dumps(embedder)
    return text if len(text) < 200 else text[:200] + " ..."
