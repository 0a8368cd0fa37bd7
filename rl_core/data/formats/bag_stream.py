"""Reading a bag message by message: a rosbag2 folder (MCAP or SQLite) or a single MCAP file, also one that was not closed.

MCAP is read from front to back, not through its index, so that a bag whose recorder was killed gives all that is whole, and so that
the time a message was sent is there (`rosbags` gives the time it was received). Everything else is read by `rosbags`.
"""

from __future__ import annotations

import functools
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import yaml
from mcap.records import Channel, DataEnd, Message, Metadata, Schema
from mcap.stream_reader import StreamReader
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from rl_core.data.damage import describe
from rl_core.data.episode import DatasetError

METADATA_FILE = "metadata.yaml"
RECOVERED = "recovered"
"""Metadata record of a bag that was made whole: its last episode is not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BagMessage:
    """One serialised message (CDR) of a topic; times are nanoseconds since the epoch.

    Attributes:
        topic: absolute name.
        type: e.g. `sensor_msgs/msg/JointState`.
        data: CDR.
        sent_ns: when it was sent, by the sender's clock; where the bag does not tell, when it was received.
        received_ns: when it was received, by the recorder's clock.
    """

    topic: str
    type: str
    data: bytes
    sent_ns: int
    received_ns: int


_kilted = functools.cache(lambda: get_typestore(Stores.ROS2_KILTED))


class BagTypes:
    """Message types: those of ROS 2 Kilted, and those a bag defines itself."""

    def __init__(self) -> None:
        self._store = _kilted()

    def define(self, name: str, definition: str) -> None:
        """Adds type `name`, whose `.msg` text (with those of the types in it) a bag carries; a known one stays as it is."""
        if definition and name not in self._store.fielddefs:
            found = get_types_from_msg(definition, name)
            if self._store is _kilted():
                self._store = get_typestore(Stores.ROS2_KILTED)  # one of this bag's own
            self._store.register({key: value for key, value in found.items() if key not in self._store.fielddefs})

    def decode(self, message: BagMessage) -> Any:
        """The message as an object with the fields of its type.

        Raises:
            DatasetError: an unknown type, or bytes that are not one.
        """
        if message.type not in self._store.fielddefs:
            raise DatasetError(f"topic {message.topic}: no definition of message type {message.type!r}, here or in the bag")
        try:
            return self._store.deserialize_cdr(message.data, message.type)
        except Exception as error:  # rosbags raises whatever its generated code stumbles over
            raise DatasetError(f"topic {message.topic}: a message is no {message.type}: {describe(error)}") from error


class BagReader:
    """Reads the bag at `path` once.

    Attributes:
        types: decodes its messages.
        topics: topic -> type, as far as read.
        metadata: MCAP's metadata records in their order, as far as read.
        damage: why the bag ended before its end; empty where it was closed.

    Raises:
        DatasetError: no bag there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.types = BagTypes()
        self.topics: dict[str, str] = {}
        self.metadata: list[tuple[str, dict[str, str]]] = []
        self.damage = ""
        self._files = _mcap_files(path)

    def messages(self) -> Iterator[BagMessage]:
        """All messages in the order they were recorded; ends at the first damage.

        Raises:
            DatasetError: rosbags cannot open a bag that is not MCAP.
        """
        if self._files is None:
            yield from self._through_rosbags()
            return
        for file in self._files:
            with open(file, "rb") as source:
                self.damage = yield from self._through_mcap(source)
            if self.damage:
                return

    def _through_mcap(self, source: IO[bytes]) -> Generator[BagMessage, None, str]:
        schemas: dict[int, Schema] = {}
        channels: dict[int, tuple[str, str]] = {}
        records = whole_records(source)
        while True:
            try:
                record = next(records)
            except StopIteration as end:
                recovered = "it was not closed, and made whole later" if any(name == RECOVERED for name, _ in self.metadata) else ""
                return end.value or recovered
            try:
                if isinstance(record, Schema):
                    schemas[record.id] = record
                    if record.encoding == "ros2msg":
                        self.types.define(record.name, record.data.decode())
                elif isinstance(record, Channel):
                    channels[record.id] = record.topic, schemas[record.schema_id].name
                    self.topics[record.topic] = schemas[record.schema_id].name
                elif isinstance(record, Metadata):
                    self.metadata.append((record.name, dict(record.metadata)))
                elif isinstance(record, Message):
                    topic, kind = channels[record.channel_id]
                    times = {"sent_ns": record.publish_time, "received_ns": record.log_time}
                    yield BagMessage(topic=topic, type=kind, data=record.data, **times)
            except Exception as error:  # a definition that is no text, a message of a channel that was never named, ...
                return f"a record is damaged: {describe(error)}"

    def _through_rosbags(self) -> Iterator[BagMessage]:
        try:
            with Reader(self.path) as reader:
                for connection in reader.connections:
                    self.topics[connection.topic] = connection.msgtype
                    self.types.define(connection.msgtype, connection.msgdef.data)
                for connection, stamp_ns, data in reader.messages():
                    kind = connection.msgtype
                    yield BagMessage(topic=connection.topic, type=kind, data=bytes(data), sent_ns=stamp_ns, received_ns=stamp_ns)
        except DatasetError:
            raise
        except Exception as error:
            if not self.topics:
                raise DatasetError(f"{self.path}: no bag that can be read: {describe(error)}") from error
            self.damage = f"the rest is damaged: {describe(error)}"


def whole_records(source: IO[bytes]) -> Generator[Any, None, str]:
    """MCAP's records up to the end of the data or the first that is damaged; returns what is wrong, empty where nothing is."""
    try:
        for record in StreamReader(source, validate_crcs=True).records:
            if isinstance(record, DataEnd):
                return ""
            yield record
    except Exception as error:  # truncated or flipped bytes lead the parser and the decompressors anywhere
        return f"it ends in the middle or is damaged: {describe(error)}"
    return "it has no end"


def _mcap_files(path: Path) -> list[Path] | None:
    """MCAP files in their order; None where rosbags must read the bag: SQLite, or compressed by rosbag2 itself."""
    if path.is_file():
        return [path]
    description = path / METADATA_FILE
    if not description.is_file():
        files = sorted(path.glob("*.mcap"), key=lambda file: (len(file.name), file.name))
        if not files:
            raise DatasetError(f"{path}: no bag; valid: a folder with {METADATA_FILE} and .mcap or .db3 files, or an .mcap file")
        return files
    try:
        information = yaml.safe_load(description.read_text())["rosbag2_bagfile_information"]
        files = [path / Path(name).name for name in information["relative_file_paths"]]
        compressed = str(information.get("compression_mode") or "none").lower() != "none"
        through_rosbags = compressed or information["storage_identifier"] != "mcap"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise DatasetError(f"{description}: not readable: {describe(error)}") from error
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise DatasetError(f"{description}: names {missing}; found {sorted(file.name for file in path.iterdir())}")
    return None if through_rosbags else files
