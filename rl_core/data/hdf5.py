"""HDF5 files read and written so that a damaged one is a DatasetError that names file and field.

The HDF5 library trusts what it reads: a wrong byte in a file of its oldest layout can crash it, hang it, or come back as another
number. What is written here therefore carries checksums throughout, which the library itself verifies: the layout of HDF5 1.10 for
everything structural, Fletcher's for arrays, and texts of fixed length, because the heap that holds the others has none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import h5py
import numpy as np
from h5py import h5a, h5d, h5s
from numpy.typing import NDArray

from rl_core.contract import ContractError
from rl_core.data.atomic import write_atomically
from rl_core.data.episode import DatasetError

_LAYOUT = ("v110", "v110")
_CHUNK_BYTES = 1 << 20
_PLAIN = "fiub"
"""Kinds of NumPy types that HDF5 reads as they are."""
_DAMAGE = (OSError, KeyError, RuntimeError, ValueError, TypeError)
"""What h5py raises for a file that isn't what it says."""


@contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """Opens `path` for reading; whatever HDF5 stumbles over inside the block becomes a DatasetError."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except DatasetError:
        raise
    except ContractError as error:
        raise DatasetError(f"{path}: attribute 'contract': {error}") from error
    except _DAMAGE as error:
        raise DatasetError(f"{path}: truncated, damaged or not HDF5: {error}") from error


@contextmanager
def create_hdf5(path: Path) -> Iterator[h5py.File]:
    """Opens a new HDF5 file that appears at `path` whole, at the end of the block.

    Raises:
        DatasetError: it cannot be written, e.g. because the disk is full; an older `path` stays as it was.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as target:
            disk = _Disk(target)
            try:
                with h5py.File(path, "w", driver="fileobj", fileobj=disk, libver=_LAYOUT) as file:
                    yield file
            finally:
                if disk.error is not None:
                    raise disk.error
    except OSError as error:
        raise DatasetError(f"{path}: cannot be written: {error}; files that were finished before are whole") from error


class _Disk:
    """The file that HDF5 writes to, through which no write ever fails: the library crashes, later, when one does.

    From the first error on, which is kept in `error`, nothing is done any more.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.error: OSError | None = None
        self._file: Any = file

    def _try(self, call: Callable[[], int], otherwise: int) -> int:
        if self.error is None:
            try:
                return call()
            except OSError as error:
                self.error = error
        return otherwise

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._try(lambda: self._file.seek(offset, whence), offset)

    def tell(self) -> int:
        return self._try(self._file.tell, 0)

    def readinto(self, buffer: memoryview) -> int:
        return self._try(lambda: self._file.readinto(buffer), len(buffer))

    def write(self, data: memoryview) -> int:
        return self._try(lambda: self._file.write(data), len(data))

    def truncate(self, size: int) -> int:
        return self._try(lambda: self._file.truncate(size), size)

    def flush(self) -> None:
        self._try(lambda: self._file.flush() or 0, 0)


def write_array(group: h5py.Group, name: str, values: NDArray[Any], **options: Any) -> None:
    """Writes `values`, which have one row or more, with checksums; in one piece unless they are large or `options` say otherwise."""
    chunks = values.shape if values.nbytes <= _CHUNK_BYTES else True
    group.create_dataset(name, data=values, **{"chunks": chunks, "fletcher32": True, **options})


def write_text(group: h5py.Group, name: str, text: str) -> None:
    """Writes the attribute `name` of `group`; h5py reads it as bytes."""
    data = text.encode()
    group.attrs.create(name, data, dtype=h5py.string_dtype("utf-8", max(len(data), 1)))


def read_text(group: h5py.Group, name: str) -> str:
    """The attribute `name` of `group`, whoever wrote it; raises DatasetError where it is no text."""
    value = group.attrs[name]
    if not isinstance(value, str | bytes):
        raise DatasetError(f"{group.file.filename}: attribute {name!r} of {group.name} is {type(value).__name__}, valid: text")
    return value if isinstance(value, str) else value.decode()


def is_hdf5(path: Path) -> bool:
    """Whether `path` begins like an HDF5 file or is named like one (a truncated one may not begin so)."""
    return path.is_file() and (h5py.is_hdf5(path) or path.suffix in (".hdf5", ".h5"))


def top_level(path: Path) -> set[str]:
    """Names at the root of the HDF5 file at `path`; empty where it cannot be opened."""
    try:
        with h5py.File(path, "r") as file:
            return set(file)
    except _DAMAGE:
        return set()


def read_array(group: h5py.Group, name: str, *, rows: int | None = None) -> NDArray[Any]:
    """The dataset `name` of `group`.

    Raises:
        DatasetError: it is missing, isn't an array, has not `rows` rows, or its checksum is wrong.
    """
    node = _open_array(group, name, rows)
    try:
        dtype = node.dtype
        if dtype.kind not in _PLAIN:
            return np.asarray(h5py.Dataset(node)[()])
        values = np.empty(node.shape, dtype)
        node.read(h5s.ALL, h5s.ALL, values)
        return values
    except OSError as error:
        raise DatasetError(f"{_where(group, name)} is damaged: {error}") from error


def read_last_row(group: h5py.Group, name: str, *, rows: int) -> NDArray[Any]:
    """The last row (1, ...) of the dataset `name` of `group`; pictures before it are not decompressed. Raises as `read_array`."""
    node = _open_array(group, name, rows)
    try:
        values = np.empty((1, *node.shape[1:]), node.dtype)
        last = node.get_space()
        last.select_hyperslab((rows - 1, *(0,) * (values.ndim - 1)), values.shape)
        node.read(h5s.create_simple(values.shape), last, values)
        return values
    except OSError as error:
        raise DatasetError(f"{_where(group, name)} is damaged: {error}") from error


def _open_array(group: h5py.Group, name: str, rows: int | None) -> h5d.DatasetID:
    # h5py's own classes cost several times what the library needs, which is what loading small arrays takes
    try:
        node = h5d.open(group.id, name.encode())
        shape = node.shape
    except _DAMAGE as error:
        raise DatasetError(f"{_where(group, name)} is missing; found {sorted(group)}") from error
    if not shape:
        raise DatasetError(f"{_where(group, name)} is a single value; valid: an array with one row a step")
    if rows is not None and shape[0] != rows:
        raise DatasetError(f"{_where(group, name)} has {shape[0]} rows, valid: {rows}")
    return node


def _where(group: h5py.Group, name: str) -> str:
    return f"{group.file.filename}: {group.name.rstrip('/')}/{name}"


def read_attributes(group: h5py.Group) -> dict[str, Any]:
    """All attributes of `group`; texts as `str`, however they are stored."""
    found: dict[str, Any] = {}
    for index in range(h5a.get_num_attrs(group.id)):
        attribute = h5a.open(group.id, index=index)
        name, dtype = attribute.name.decode(), attribute.dtype
        if attribute.shape == () and dtype.kind in _PLAIN + "S":
            value = np.empty((), dtype)
            attribute.read(value)
            found[name] = value.item().decode() if dtype.kind == "S" else value[()]
        else:
            found[name] = group.attrs[name]
    return found


def read_numbers(group: h5py.Group, name: str, *, rows: int | None = None, columns: int | None = None) -> NDArray[np.float32]:
    """`read_array` as float32, 1-dimensional or, with `columns`, of shape (rows, columns)."""
    values = read_array(group, name, rows=rows)
    if not (np.issubdtype(values.dtype, np.number) or values.dtype == bool):
        raise DatasetError(f"{_where(group, name)} has type {values.dtype}, valid: numbers")
    if columns is None:
        values = values.reshape(len(values), -1)
        if values.shape[1] != 1:
            raise DatasetError(f"{_where(group, name)} has {values.shape[1]} columns, valid: 1")
        return to_float32(values[:, 0], _where(group, name))
    if values.ndim != 2 or values.shape[1] != columns:
        raise DatasetError(f"{_where(group, name)} has shape {values.shape}, valid: (rows, {columns})")
    return to_float32(values, _where(group, name))


def to_float32(values: NDArray[Any], where: str) -> NDArray[np.float32]:
    """`values` as float32; raises DatasetError that begins with `where` for finite numbers beyond its range."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    if (np.isinf(narrow) & np.isfinite(values)).any():
        raise DatasetError(f"{where} has numbers up to {np.nanmax(np.abs(values[np.isfinite(values)])):.3g}, valid: within float32, 3.4e38")
    return narrow


def read_json(group: h5py.Group, name: str) -> dict[str, Any]:
    """The attribute `name` of `group` as a JSON object; empty where there is none."""
    return parse_json(group.attrs.get(name, "{}"), f"{group.file.filename}: attribute {name!r} of {group.name}")


def parse_json(text: Any, where: str) -> dict[str, Any]:
    """The JSON object in `text`; raises DatasetError that begins with `where`."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError) as error:
        raise DatasetError(f"{where} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DatasetError(f"{where} is {type(value).__name__}, valid: a JSON object")
    return value
