"""EpisodeWriter: one HDF5 file an episode, in a folder with `dataset.json`. A crash loses at most the episode under way.

    FOLDER/dataset.json     {format_version, contract}, of a converted dataset also the `order` of its uuids; which episodes there
                            are is said by the files alone
    FOLDER/episodes.txt     a line `UUID CRC32` for every episode that was written: one whose file is gone is named in a warning
    FOLDER/UUID.hdf5        data/demo_0 in the native layout (see `rl_core.data.demo_layout`)

A file is written as `UUID.hdf5.part`, flushed to the disk and renamed, so that a name without `.part` is always whole.
"""

from __future__ import annotations

import json
import logging
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from rl_core.contract import ContractError, RobotContract
from rl_core.data.atomic import remove_stale_parts, write_atomically
from rl_core.data.damage import describe
from rl_core.data.demo_layout import create_data, demo_names, read_contract, read_demo, write_demo
from rl_core.data.episode import DatasetError, Episode
from rl_core.data.hdf5 import create_hdf5, open_hdf5, read_array

logger = logging.getLogger(__name__)

DATASET_FILE = "dataset.json"
INDEX_FILE = "episodes.txt"
FOLDER_VERSION = 1


class EpisodeWriter:
    """Appends episodes to a folder; several writers, in processes of their own, may append to one folder.

    Parts of a writer that died are removed when the folder is opened.

    Args:
        folder: made if needed; an older one must have an equal contract.
        contract: what the numbers of every episode mean.
        order: uuids in the order to be read in, for a new folder; all others are read after them, by their first stamp.

    Raises:
        DatasetError: the folder holds episodes of another contract, or other files.
    """

    def __init__(self, folder: str | Path, contract: RobotContract, order: Sequence[str] = ()) -> None:
        self.folder = Path(folder)
        self.contract = contract
        if (self.folder / DATASET_FILE).is_file():
            held = read_folder_contract(self.folder)
            if held != contract:
                raise DatasetError(f"{self.folder}: contracts differ; there: {held.to_json()}; to be appended: {contract.to_json()}")
            remove_stale_parts(self.folder)
            return
        if self.folder.exists() and any(self.folder.glob("*.hdf5")):
            raise DatasetError(f"{self.folder}: holds HDF5 files but no {DATASET_FILE}; valid: a new folder or one that a recorder made")
        self.folder.mkdir(parents=True, exist_ok=True)
        header = {"format_version": FOLDER_VERSION, "contract": json.loads(contract.to_json())}
        if order:
            header["order"] = list(order)
        with write_atomically(self.folder / DATASET_FILE) as file:
            file.write((json.dumps(header, indent=1) + "\n").encode())

    def write(self, episode: Episode) -> Path:
        """Writes one finished episode; when this returns it is on the disk.

        Raises:
            DatasetError: an episode of that uuid is there already, its uuid is no file name, or a channel is missing.
        """
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", episode.uuid):
            raise DatasetError(f"episode uuid {episode.uuid!r}; valid: letters, digits, '.', '_' and '-'")
        path = self.folder / f"{episode.uuid}.hdf5"
        if path.exists():
            raise DatasetError(f"{path}: there is already an episode of that uuid")
        with create_hdf5(path) as file:
            data = create_data(file, self.contract)
            write_demo(data, "demo_0", episode, self.contract)
            data.attrs["total"] = len(episode)
        self._list(episode.uuid)
        return path

    def _list(self, uuid: str) -> None:
        """Adds a line, in one write that several writers do not mix. A crash before it leaves an episode that is there and not listed.

        A line that a crash cut short is told by its checksum; the next begins anew.
        """
        line = f"\n{uuid} {zlib.crc32(uuid.encode()):08x}\n".encode()
        try:
            index = os.open(self.folder / INDEX_FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                os.write(index, line)
                os.fsync(index)
            finally:
                os.close(index)
        except OSError as error:  # the episode itself is whole
            logger.warning("%s: cannot be written: %s; if the file of episode %s is deleted, nobody will miss it", INDEX_FILE, error, uuid)


def finished_episodes(folder: str | Path) -> dict[str, Path]:
    """uuid -> file of every finished episode, in the order of the uuids; empty where the folder doesn't exist."""
    return {file.stem: file for file in sorted(Path(folder).glob("*.hdf5"))}


def missing_episodes(folder: str | Path) -> list[str]:
    """Uuids of episodes that were written and whose files are gone, in the order they were written in."""
    try:
        lines = (Path(folder) / INDEX_FILE).read_text(errors="replace").splitlines()
    except FileNotFoundError:  # an older folder
        return []
    listed = dict.fromkeys(uuid for uuid, _, crc in (line.rpartition(" ") for line in lines) if crc == f"{zlib.crc32(uuid.encode()):08x}")
    there = finished_episodes(folder)
    return [uuid for uuid in listed if uuid not in there]


def read_folder_contract(folder: Path) -> RobotContract:
    """The contract in `dataset.json`; raises DatasetError where it is missing, damaged or of an unknown version."""
    return _read_header(folder)[0]


def _read_header(folder: Path) -> tuple[RobotContract, dict[str, int]]:
    """The contract, and the place of each uuid in the order where one was given."""
    file = folder / DATASET_FILE
    if not file.is_file():
        raise DatasetError(f"{folder}: no {DATASET_FILE}; valid: a folder that a recorder wrote")
    try:
        header = json.loads(file.read_text())
        version, contract = header["format_version"], header["contract"]
        if version != FOLDER_VERSION:
            raise DatasetError(f"{file}: format_version {version!r}; this Armstack reads version {FOLDER_VERSION}")
        order = {str(uuid): place for place, uuid in enumerate(header.get("order", ()))}
        return RobotContract.from_json(json.dumps(contract)), order
    except (ValueError, KeyError, TypeError, ContractError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"{file}: not readable: {describe(error)}") from error


def read_episode(file: Path, contract: RobotContract) -> Episode:
    """The episode in one file of a folder whose contract is `contract`."""
    with open_hdf5(file) as opened:
        data = opened.get("data")
        if data is None or "contract" not in data.attrs or demo_names(data) != ["demo_0"]:
            raise DatasetError(f"{file}: not a recorded episode; valid: data/demo_0 with a contract")
        if read_contract(data) != contract:
            raise DatasetError(f"{file}: its contract differs from the one in {DATASET_FILE}")
        return read_demo(data["demo_0"], contract)


def read_episodes(folder: Path, contract: RobotContract) -> Iterator[Episode]:
    """Every finished episode, in the order that `dataset.json` gives, then of the first stamp and the uuid; one is in memory at a time.

    Files that were written and are gone are named in a warning.

    Raises:
        DatasetError: a file is damaged or belongs to another contract.
    """
    files = finished_episodes(folder)
    order = _read_header(folder)[1]
    missing = missing_episodes(folder)
    if missing:
        named = ", ".join(missing[:5] + ["..."] * (len(missing) > 5))
        text = "%s: of %d recorded episodes %d are gone: %s; if that was meant, delete their lines in %s"
        logger.warning(text, folder, len(files) + len(missing), len(missing), named, INDEX_FILE)

    def begin(uuid: str) -> tuple[int, int, str]:
        with open_hdf5(files[uuid]) as opened:
            return order.get(uuid, len(order)), int(read_array(opened, "data/demo_0/stamps_ns")[0]), uuid

    for uuid in sorted(files, key=begin):
        yield read_episode(files[uuid], contract)


def pack(folder: str | Path, path: str | Path) -> Path:
    """Packs a folder of episodes into one HDF5 file; uuids, stamps and order are kept, so the fingerprint is equal."""
    contract = read_folder_contract(Path(folder))
    path = Path(path)
    with create_hdf5(path) as file:
        data = create_data(file, contract)
        total = 0
        for index, episode in enumerate(read_episodes(Path(folder), contract)):
            write_demo(data, f"demo_{index}", episode, contract)
            total += len(episode)
        data.attrs["total"] = total
    return path
