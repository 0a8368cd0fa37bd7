"""MCAP and rosbag2 bags as datasets: our graph's, those of other robots through a mapping, and datasets written as MCAP.

A mapping (`rl_core.data.formats.bag_mapping`) lies beside the bag: `FOLDER/mapping.yaml`, or `NAME.mapping.yaml` for `NAME.mcap`.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections.abc import Mapping
from pathlib import Path

from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.formats.bag_mapping import BagMapping, read_mapping
from rl_core.data.formats.base import require_numbers, require_writable

logger = logging.getLogger(__name__)

MAPPING_FILE = "mapping.yaml"
_MAGIC = b"\x89MCAP0\r\n"


class McapFormat:
    """See the module.

    Args:
        mapping: of the bags to be read; None takes the one beside the bag, or our own graph's topics.
    """

    name = "mcap"
    layout = "an MCAP file, or a rosbag2 folder with metadata.yaml"
    extensions: tuple[str, ...] = (".mcap",)
    entries: tuple[str, ...] = ("*.mcap", "*.db3", "*.yaml")
    cannot_hold: Mapping[str, str] = {}
    check_contract = staticmethod(require_numbers)

    def __init__(self, mapping: BagMapping | None = None) -> None:
        self._mapping = mapping

    def matches(self, path: Path) -> bool:
        """An MCAP file, by its first bytes or its name, or a folder with `metadata.yaml`, or with MCAP files and nothing else.

        A bag whose recorder was killed has no `metadata.yaml`; any other folder may hold an MCAP file among other things.
        """
        try:
            if path.is_dir():
                if (path / "metadata.yaml").is_file():
                    return True
                entries = list(path.iterdir())
                return bool(entries) and all(entry.suffix == ".mcap" for entry in entries)
            with open(path, "rb") as file:
                return file.read(len(_MAGIC)) == _MAGIC or path.suffix == ".mcap"
        except OSError:
            return False

    def read(self, path: Path) -> Dataset:
        """Reads all finished episodes.

        Of a bag that was not closed or is damaged, those before the damage; this is said in a warning.

        Raises:
            DatasetError: no finished episode; a topic, a name or a contract is missing; a message cannot be used.
        """
        from rl_core.data.formats.bag_dataset import is_written_dataset, read_written_dataset
        from rl_core.data.formats.bag_recording import read_recorded
        from rl_core.data.formats.bag_stream import BagReader

        mapping = self._mapping or _mapping_beside(path)
        try:
            reader = BagReader(path)
            messages = reader.messages()
            first = next(messages, None)
            every = itertools.chain([first] if first is not None else [], messages)
            if is_written_dataset(reader):
                dataset = read_written_dataset(reader, every)
            else:
                dataset = read_recorded(reader, every, mapping)
        except DatasetError as error:
            raise DatasetError(f"{path}: {error}".replace(f"{path}: {path}", f"{path}", 1)) from error
        except OSError as error:
            raise DatasetError(f"{path}: cannot be read: {error}") from error
        if reader.damage:
            logger.warning("%s: %s; %d finished episodes are kept", path, reader.damage, len(dataset))
        if not dataset.episodes:
            problem = reader.damage or f"no episode on topics {sorted(reader.topics)}"
            raise DatasetError(f"{path}: no finished episode: {problem}")
        return dataclasses.replace(dataset, source=str(path))

    def write(self, dataset: Dataset, path: Path) -> None:
        """Writes one MCAP file.

        Raises:
            DatasetError: no episodes, one without a step or without a channel, text, or a folder lies at `path`.
        """
        from rl_core.data.formats.bag_dataset import write_bag

        require_writable(dataset, path)
        if path.is_dir():
            raise DatasetError(f"{path}: is a folder; valid: an .mcap file")
        write_bag(dataset, path)


def _mapping_beside(path: Path) -> BagMapping | None:
    file = path / MAPPING_FILE if path.is_dir() else path.with_suffix(f".{MAPPING_FILE}")
    return read_mapping(file) if file.is_file() else None
