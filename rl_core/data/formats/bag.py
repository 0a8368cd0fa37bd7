"""A rosbag2 folder with one MCAP file, written so that a killed recorder loses at most the last second.

    FOLDER/FOLDER_0.mcap   raw CDR messages, schemas (`ros2msg`), one `episode` metadata record an episode, a last one for the whole bag
    FOLDER/metadata.yaml   written last; a bag without it was not closed, and `recover` makes it whole

Times: MCAP's `log_time` is when the message was received, `publish_time` when it was sent, both as the middleware stamped them;
headers inside the messages stay untouched. `sequence` is the publisher's own count.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import mcap
from mcap.records import Channel, Message, Metadata, Schema
from mcap.writer import Writer
from rosbags.typesys import Stores, get_typestore
from ruamel.yaml import YAML

from rl_core.data.episode import DatasetError
from rl_core.data.formats.bag_stream import METADATA_FILE, RECOVERED, whole_records

_BAG_VERSION = 9
_CHUNK_BYTES = 1 << 20


class BagError(DatasetError):
    """A bag that cannot be written or read; names the file, what was found and what would be valid."""


class McapFile:
    """Serialised ROS messages into one MCAP stream, in ROS 2's profile."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._writer = Writer(stream, chunk_size=_CHUNK_BYTES)
        self._writer.start(profile="ros2", library=f"armstack; mcap {mcap.__version__}")
        self._types = get_typestore(Stores.ROS2_KILTED)
        self._schemas: dict[str, int] = {}
        self._channels: dict[str, int] = {}
        self.index = _Index()

    def check_type(self, message_type: str) -> None:
        """Raises BagError for a type whose definition is not known, e.g. anything but `sensor_msgs/msg/JointState` and its like."""
        if message_type not in self._types.fielddefs:
            raise BagError(f"no definition of message type {message_type!r}; known are ROS 2 Kilted's common messages")

    def _channel(self, topic: str, message_type: str) -> int:
        if topic not in self._channels:
            self.check_type(message_type)
            if message_type not in self._schemas:
                definition, _ = self._types.generate_msgdef(message_type, ros_version=2)
                self._schemas[message_type] = self._writer.register_schema(message_type, "ros2msg", definition.encode())
            digest = self._types.hash_rihs01(message_type)
            metadata = {"offered_qos_profiles": "", "topic_type_hash": digest}
            self._channels[topic] = self._writer.register_channel(topic, "cdr", self._schemas[message_type], metadata)
            self.index.topics[topic] = (message_type, digest)
        return self._channels[topic]

    def write(self, topic: str, message_type: str, data: bytes, *, received_ns: int, sent_ns: int, sequence: int) -> None:
        """Writes one serialised message of ROS type `message_type`, e.g. `sensor_msgs/msg/JointState`."""
        self._writer.add_message(self._channel(topic, message_type), received_ns, data, sent_ns, sequence & 0xFFFFFFFF)
        self.index.add(topic, received_ns)

    def write_metadata(self, name: str, values: Mapping[str, str]) -> None:
        """Writes a metadata record behind all messages so far."""
        self._writer.flush()
        self._writer.add_metadata(name, dict(values))

    def flush(self) -> None:
        """Ends the chunk and brings it to the disk: what is written so far survives a kill."""
        self._writer.flush()
        os.fsync(self._stream.fileno())

    def finish(self) -> None:
        """Writes the index; the stream stays open."""
        self._writer.finish()
        self._stream.flush()
        os.fsync(self._stream.fileno())


class BagWriter:
    """Writes messages to a new bag folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if self.folder.exists():
            raise BagError(f"{self.folder}: exists; give a new folder (a bag that was not closed can be made whole with `recover`)")
        self.folder.mkdir(parents=True)
        self.file = self.folder / f"{self.folder.name}_0.mcap"
        self._stream: IO[bytes] = open(self.file, "wb")
        self._mcap = McapFile(self._stream)
        self.check_type = self._mcap.check_type
        self.write = self._mcap.write
        self.flush = self._mcap.flush

    def write_metadata(self, name: str, values: Mapping[str, str]) -> None:
        """Writes a metadata record and brings all so far to the disk."""
        self._mcap.write_metadata(name, values)
        self.flush()

    def close(self, custom: Mapping[str, str] | None = None) -> None:
        """Writes the index and `metadata.yaml`; `custom` goes into its `custom_data`."""
        self._mcap.finish()
        self._stream.close()
        self._mcap.index.write(self.folder, self.file.name, custom or {})


class _Index:
    """What `metadata.yaml` says about the messages."""

    def __init__(self) -> None:
        self.topics: dict[str, tuple[str, str]] = {}
        self.counts: dict[str, int] = {}
        self.first = 2**63 - 1
        self.last = 0

    def add(self, topic: str, stamp_ns: int) -> None:
        self.counts[topic] = self.counts.get(topic, 0) + 1
        self.first, self.last = min(self.first, stamp_ns), max(self.last, stamp_ns)

    def write(self, folder: Path, file_name: str, custom: Mapping[str, str]) -> None:
        total = sum(self.counts.values())
        span = {"starting_time": {"nanoseconds_since_epoch": self.first}, "duration": {"nanoseconds": max(0, self.last - self.first)}}
        topics = [
            {
                "topic_metadata": {
                    "name": topic,
                    "type": message_type,
                    "serialization_format": "cdr",
                    "offered_qos_profiles": [],
                    "type_description_hash": digest,
                },
                "message_count": self.counts.get(topic, 0),
            }
            for topic, (message_type, digest) in self.topics.items()
        ]
        information: dict[str, Any] = {
            "version": _BAG_VERSION,
            "storage_identifier": "mcap",
            "relative_file_paths": [file_name],
            **span,
            "message_count": total,
            "topics_with_message_count": topics,
            "compression_format": "",
            "compression_mode": "",
            "files": [{"path": file_name, **span, "message_count": total}],
            "custom_data": dict(custom) or None,
            "ros_distro": "kilted",
        }
        part = folder / f"{METADATA_FILE}.part"
        yaml = YAML(typ="safe")
        yaml.default_flow_style = False
        with open(part, "w") as stream:
            yaml.dump({"rosbag2_bagfile_information": information}, stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, folder / METADATA_FILE)


def is_closed(folder: str | Path) -> bool:
    """Whether the bag was closed (or made whole)."""
    return (Path(folder) / METADATA_FILE).is_file()


def recover(folder: str | Path) -> int:
    """Makes a bag whole that was not closed: keeps every complete chunk, writes index and `metadata.yaml`.

    Returns:
        Number of messages kept.

    Raises:
        BagError: no MCAP file there.
    """
    folder = Path(folder)
    files = sorted(folder.glob("*.mcap"))
    if len(files) != 1:
        raise BagError(f"{folder}: {len(files)} .mcap files, valid: one")
    part = folder / f"{files[0].name}.part"
    index = _Index()
    with open(files[0], "rb") as source, open(part, "wb") as target:
        writer = Writer(target, chunk_size=_CHUNK_BYTES)
        writer.start(profile="ros2", library=f"armstack; mcap {mcap.__version__}")
        schemas: dict[int, tuple[int, str]] = {}
        channels: dict[int, tuple[int, str]] = {}
        for record in whole_records(source):
            if isinstance(record, Schema):
                schemas[record.id] = (writer.register_schema(record.name, record.encoding, record.data), record.name)
            elif isinstance(record, Channel) and record.id not in channels:
                schema, type_name = schemas[record.schema_id]
                channels[record.id] = (writer.register_channel(record.topic, "cdr", schema, record.metadata), record.topic)
                index.topics[record.topic] = (type_name, record.metadata.get("topic_type_hash", ""))
            elif isinstance(record, Message):
                channel, topic = channels[record.channel_id]
                writer.add_message(channel, record.log_time, record.data, record.publish_time, record.sequence)
                index.add(topic, record.log_time)
            elif isinstance(record, Metadata):
                writer.add_metadata(record.name, record.metadata)
        writer.add_metadata(RECOVERED, {})
        writer.finish()
        target.flush()
        os.fsync(target.fileno())
    os.replace(part, files[0])
    index.write(folder, files[0].name, {"recovered": "the recorder did not close this bag; messages after its last flush are missing"})
    return sum(index.counts.values())


def next_folder(folder: str | Path) -> Path:
    """`folder`, or `folder_1`, `folder_2`, ... where it exists."""
    folder, candidate, number = Path(folder), Path(folder), 0
    while candidate.exists():
        number += 1
        candidate = folder.with_name(f"{folder.name}_{number}")
    return candidate
