"""Rows of a replay ring on disk as append-only shards: saving costs what was added, and no shard is ever rewritten.

replay.json                    capacity, columns, and the shards with their first and last row
rows-START-STOP.npz            rows START..STOP-1, counted from the first row ever added
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.data.atomic import write_atomically
from rl_core.data.columns import Columns
from rl_core.data.damage import describe
from rl_core.data.episode import DatasetError

SHARDS_VERSION = 1


def save_rows(folder: Path, rows: NDArray[np.float32], added: int, saved: int, columns: Columns) -> Path:
    """Appends to `folder` the rows of the ring `rows` from number `saved` to `added`.

    What `folder` holds beyond `saved`, from a run that was then set back to an earlier checkpoint, is dropped from the list.
    """
    folder.mkdir(parents=True, exist_ok=True)
    capacity = len(rows)
    shards: list[list[int]] = []
    if (folder / "replay.json").is_file():
        header = _read_header(folder)
        if header["columns"] != columns.widths or header["capacity"] != capacity:
            raise DatasetError(
                f"{folder}: holds capacity {header['capacity']}, columns {header['columns']}; to be saved: {capacity}, {columns.widths}"
            )
        shards = [[start, min(stop, saved), last] for start, stop, last in header["shards"] if start < saved]
    start = max(shards[-1][1] if shards else 0, added - capacity)
    if start < added:
        kept = rows[np.arange(start, added) % capacity]
        with write_atomically(_shard(folder, start, added)) as file:
            np.savez(file, rows=kept)
        shards.append([start, added, added])
    header = {"version": SHARDS_VERSION, "capacity": capacity, "columns": columns.widths, "added": added, "shards": shards}
    with write_atomically(folder / "replay.json") as file:
        file.write(json.dumps(header).encode())
    return folder


def load_rows(folder: Path, added: int | None = None) -> tuple[NDArray[np.float32], int, Columns]:
    """(ring (capacity, width), rows ever added, columns) as they were when `added` rows had been added."""
    header = _read_header(folder)
    total = header["added"] if added is None else added
    if not 0 <= total <= header["added"]:
        raise DatasetError(f"{folder}: rows asked for {total}, valid: 0..{header['added']}")
    columns = Columns(header["columns"])
    capacity = header["capacity"]
    ring = np.zeros((capacity, columns.width), np.float32)
    for start, stop, last in header["shards"]:
        # `last` names the file; `stop` is smaller where a later save began before the end of this shard
        first, end = max(start, total - capacity), min(stop, total)
        if first < end:
            ring[np.arange(first, end) % capacity] = _read_shard(_shard(folder, start, last), columns)[first - start : end - start]
    return ring, total, columns


def _shard(folder: Path, start: int, stop: int) -> Path:
    return folder / f"rows-{start:012d}-{stop:012d}.npz"


def _read_header(folder: Path) -> dict[str, Any]:
    file = folder / "replay.json"
    if not file.is_file():
        raise DatasetError(f"{folder}: no replay.json; valid: a folder that ReplayBuffer.save wrote")
    try:
        header = json.loads(file.read_text())
        version = header["version"]
        fields = {name: header[name] for name in ("capacity", "columns", "added", "shards")}
    except (ValueError, KeyError, TypeError) as error:
        raise DatasetError(f"{file}: not readable: {describe(error)}") from error
    if version != SHARDS_VERSION:
        raise DatasetError(f"{file}: version {version!r}; this Armstack reads version {SHARDS_VERSION}")
    return fields


def _read_shard(file: Path, columns: Columns) -> NDArray[np.float32]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            rows = arrays["rows"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DatasetError(f"{file}: shard is missing or damaged: {error}") from error
    if rows.ndim != 2 or rows.shape[1] != columns.width:
        raise DatasetError(f"{file}: rows of shape {rows.shape}, valid: (n, {columns.width}) for columns {columns.widths}")
    return rows
