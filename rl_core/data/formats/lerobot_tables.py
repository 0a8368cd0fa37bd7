"""Arrays in Parquet files: LeRobot's types, files of limited size, and errors that name the file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image

from rl_core.data.damage import describe
from rl_core.data.episode import DatasetError
from rl_core.data.formats.lerobot_layout import CHUNK_FILES

DATA_FILE_MB = 100
"""A data file is closed before an episode that would make it larger, uncompressed."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever a library stumbles over inside the block becomes a DatasetError that names `path`."""
    try:
        yield
    except FileNotFoundError as error:
        raise DatasetError(f"{path} is missing; the folder's meta/ says there is one") from error
    except DatasetError:
        raise
    except Exception as error:  # decoders of foreign files raise far more than they document
        raise DatasetError(f"{path}: truncated, damaged or not what its name says: {describe(error)}") from error


def read_table(path: Path) -> pa.Table:
    """The table in the Parquet file at `path`."""
    with reading(path):
        with pq.ParquetFile(
            path, page_checksum_verification=True
        ) as file:  # unlike `read_table` it takes no columns from the names of folders
            return file.read()


def column(table: pa.Table, name: str, path: Path) -> NDArray[Any]:
    """Numbers (rows, size) in the column `name`, whether single values or lists of equal length.

    An empty place among floats is NaN: that is how tools that work through pandas write it.

    Raises:
        DatasetError: no such column, another empty place in it, lists of different lengths, or no numbers.
    """
    if name not in table.column_names:
        raise DatasetError(f"{path}: no column {name!r}; found {table.column_names}")
    with reading(path):
        values = table.column(name).combine_chunks()
        while not values.null_count and isinstance(values, (pa.ListArray, pa.LargeListArray, pa.FixedSizeListArray)):
            if len(values) and len(pc.unique(pc.list_value_length(values))) != 1:
                raise DatasetError(f"{path}: lists of different lengths in the column {name!r}")
            values = values.flatten()
        if values.null_count and not pa.types.is_floating(values.type):
            raise DatasetError(f"{path}: {values.null_count} empty places in the column {name!r}")
        array = values.to_numpy(zero_copy_only=False)
        if array.dtype.kind not in "biuf":
            raise DatasetError(f"{path}: column {name!r} has type {values.type}, valid: numbers")
        return array.reshape(len(table), -1)


def to_arrow(values: NDArray[Any]) -> pa.Array:
    """Numbers (rows, size) as LeRobot keeps them: lists of a fixed length, or single values where size is 1."""
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    return flat if values.shape[1] == 1 else pa.FixedSizeListArray.from_arrays(flat, values.shape[1])


class TableShards:
    """Parquet files that `template` names; one episode lies in one file."""

    def __init__(self, root: Path, template: str) -> None:
        self._root, self._template = root, template
        self._number, self._size = -1, 0
        self._writer: pq.ParquetWriter | None = None

    def add(self, table: pa.Table) -> tuple[int, int]:
        """Writes one episode and returns (chunk, file) where it lies."""
        if self._writer is None or self._size + table.nbytes > DATA_FILE_MB * 2**20:
            self.close()
            self._number, self._size = self._number + 1, 0
            chunk, file = divmod(self._number, CHUNK_FILES)
            path = self._root / self._template.format(chunk_index=chunk, file_index=file)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = new_table(path, table.schema)
        self._writer.write_table(table)
        self._size += table.nbytes
        return divmod(self._number, CHUNK_FILES)

    def close(self) -> None:
        """Finishes the last file."""
        if self._writer is not None:
            self._writer.close()


def new_table(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A Parquet file to be filled; each table written to it can be read without the others."""
    return pq.ParquetWriter(path, schema, compression="snappy", write_page_checksum=True)


def to_png(picture: NDArray[np.uint8]) -> bytes:
    """A picture (height, width, 3) as PNG."""
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, format="PNG")
    return buffer.getvalue()


def from_file(content: bytes) -> NDArray[np.uint8]:
    """The picture (height, width, 3) in a PNG or JPEG file."""
    with Image.open(io.BytesIO(content)) as picture:
        return np.asarray(picture.convert("RGB"))
