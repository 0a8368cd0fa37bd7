"""Datasets on disk: one reader and writer a file, chosen by what is in the file.

`read_dataset(path)` reads any of them; `write_dataset(dataset, path)` writes the native layout, robomimic's HDF5.
"""

from __future__ import annotations

from pathlib import Path

from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.formats.base import Format
from rl_core.data.formats.d4rl import D4RLFormat
from rl_core.data.formats.episode_folder import EpisodeFolderFormat
from rl_core.data.formats.lasa import PREFIX, LasaFormat, shape_file
from rl_core.data.formats.lerobot import LeRobotFormat
from rl_core.data.formats.mcap import McapFormat
from rl_core.data.formats.minari import MinariFormat
from rl_core.data.formats.robomimic import RobomimicFormat
from rl_core.data.hdf5 import is_hdf5, open_hdf5, read_text
from rl_core.data.recording import DATASET_FILE, read_folder_contract

FORMATS: tuple[Format, ...] = (
    EpisodeFolderFormat(), RobomimicFormat(), LeRobotFormat(), MinariFormat(), McapFormat(), D4RLFormat(), LasaFormat(),
)  # fmt: skip
"""All of them; the first that matches reads a path."""
NATIVE = "robomimic"

__all__ = [
    "FORMATS",
    "NATIVE",
    "D4RLFormat",
    "EpisodeFolderFormat",
    "Format",
    "LasaFormat",
    "LeRobotFormat",
    "McapFormat",
    "MinariFormat",
    "RobomimicFormat",
    "find_format",
    "format_named",
    "locate",
    "peek_contract",
    "read_dataset",
    "write_dataset",
]


def read_dataset(path: str | Path) -> Dataset:
    """Reads the dataset at `path`, a file or a folder of episodes, whatever known format it has; or one of LASA's shapes, `lasa:SHAPE`.

    Raises:
        DatasetError: nothing there, no known format, or damaged; names the file and what would be valid.
    """
    path = locate(path)
    return find_format(path).read(path)


def write_dataset(dataset: Dataset, path: str | Path, format: str = NATIVE) -> Path:
    """Writes `dataset` to `path` in the format of that name; an older file is replaced in one rename.

    Raises:
        DatasetError: an unknown format, or data the format cannot hold.
    """
    format_named(format).write(dataset, Path(path))
    return Path(path)


def locate(path: str | Path) -> Path:
    """The path as it is, or the file of `lasa:SHAPE`."""
    return shape_file(str(path)) if str(path).startswith(PREFIX) else Path(path)


def peek_contract(path: Path) -> RobotContract | None:
    """The contract of a folder of episodes or an HDF5 file, without its data; None where it isn't known before all is read."""
    try:
        if (path / DATASET_FILE).is_file():
            return read_folder_contract(path)
        if is_hdf5(path):
            with open_hdf5(path) as file:
                place = file.get("data", file)
                return RobotContract.from_json(read_text(place, "contract")) if "contract" in place.attrs else None
    except DatasetError:  # reading it will say so
        return None
    return None


def find_format(path: Path) -> Format:
    """The format that the file or folder at `path` has, by its content.

    Raises:
        DatasetError: nothing there, or no known format.
    """
    if not path.exists():
        raise DatasetError(f"{path}: no such file or folder")
    for format in FORMATS:
        if format.matches(path):
            return format
    valid = "; ".join(f"{format.name}: {format.layout}" for format in FORMATS)
    raise DatasetError(f"{path}: no known dataset format; valid: {valid}")


def format_named(name: str) -> Format:
    """The format of that name; raises DatasetError that lists them."""
    for format in FORMATS:
        if format.name == name:
            return format
    raise DatasetError(f"format {name!r}, valid: {', '.join(format.name for format in FORMATS)}")
