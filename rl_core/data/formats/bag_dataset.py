"""A dataset as an MCAP file: what has a ROS message as that message, the rest in metadata records, and all of it back to the bit.

    observation/X/pose            PoseStamped: channels X_pos and X_quat
    observation/CHANNEL           JointState (joints and their velocities), Image, or Float64-, Int64-, UInt64MultiArray
    action, action_applied        JointState: the policy values under the names of the action's dimensions
    reward                        Float64
    metadata armstack/dataset     the contract                 first record
    metadata armstack/episode     uuid, steps, endings, success, meta, stamps, ages; behind the messages of the episode

Row t of each topic belongs to stamp t. Headers carry the stamps as they are. `log_time` is moved on from episode to episode, so that
tools show one after the other where every episode begins at zero.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rosbags.typesys import Stores, get_typestore

from rl_core.contract import Channel, ContractError, RobotContract
from rl_core.data.atomic import write_atomically
from rl_core.data.damage import describe
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.formats.bag import McapFile
from rl_core.data.formats.bag_stream import BagMessage, BagReader
from rl_core.data.formats.bag_values import numbers, picture
from rl_core.data.formats.episode_facts import facts_of, fields_from

DATASET, EPISODE = "armstack/dataset", "armstack/episode"
VERSION = 1
_BETWEEN_NS = 1_000_000_000
_ARRAYS = {"f": "std_msgs/msg/Float64MultiArray", "i": "std_msgs/msg/Int64MultiArray"}
_UNSIGNED = "std_msgs/msg/UInt64MultiArray"
_JOINT_STATE, _POSE, _IMAGE = "sensor_msgs/msg/JointState", "geometry_msgs/msg/PoseStamped", "sensor_msgs/msg/Image"
_JOINT_FIELDS = {"rad": "position", "m": "position", "rad/s": "velocity", "m/s": "velocity"}
_STORE = get_typestore(Stores.ROS2_KILTED)

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class _Column:
    """One channel on a topic."""

    channel: Channel
    topic: str
    type: str
    field: str


def _columns(contract: RobotContract) -> list[_Column]:
    channels = {channel.name: channel for channel in contract.observation}
    columns = []
    for channel in contract.observation:
        stem = channel.name.rsplit("_", 1)[0]
        position, turned = channels.get(f"{stem}_pos"), channels.get(f"{stem}_quat")
        topic, floating = f"/observation/{channel.name}", np.dtype(channel.dtype).kind == "f"
        if channel in (position, turned) and position is not None and turned is not None and _is_pose(position, turned):
            kind, topic = _POSE, f"/observation/{stem}/pose"
            field = "pose.position" if channel is position else "pose.orientation"
        elif channel.kind == "image":
            kind, field = _IMAGE, ""
        elif floating and channel.kind == "vector" and channel.unit in _JOINT_FIELDS and channel.names[0] != "x":
            kind, field = _JOINT_STATE, _JOINT_FIELDS[channel.unit]
        else:
            kind, field = _ARRAYS.get(np.dtype(channel.dtype).kind, _UNSIGNED), "data"
        columns.append(_Column(channel=channel, topic=topic, type=kind, field=field))
    return columns


def _is_pose(position: Channel, turned: Channel) -> bool:
    floats = all(np.dtype(channel.dtype).kind == "f" for channel in (position, turned))
    return floats and position.names == ("x", "y", "z") and turned.kind == "quaternion" and position.frame == turned.frame


# -- writing --------------------------------------------------------------------------------------------------------------------


def write_bag(dataset: Dataset, path: Path) -> None:
    """Writes `dataset` as one MCAP file; see the module."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = _columns(dataset.contract)
    with write_atomically(path) as stream:
        file = McapFile(stream)
        file.write_metadata(DATASET, _signed({"format_version": VERSION, "contract": json.loads(dataset.contract.to_json())}))
        end_ns = -_BETWEEN_NS
        for episode in dataset.episodes:
            stamps = np.asarray(episode.stamps_ns, np.int64)
            offset_ns = max(0, end_ns + _BETWEEN_NS - int(stamps.min()))
            end_ns = int(stamps.max()) + offset_ns
            _write_messages(file, episode, dataset.contract, columns, offset_ns)
            file.write_metadata(EPISODE, _signed(_facts(episode, dataset.contract)))
        file.finish()


def _facts(episode: Episode, contract: RobotContract) -> dict[str, Any]:
    ages = {c.name: episode.observation_age_ns[c.name] for c in contract.observation if c.name in episode.observation_age_ns}
    return {
        **facts_of(episode),
        "steps": len(episode),
        "action_applied": episode.action_applied is not None,
        "stamps_ns": np.asarray(episode.stamps_ns, np.int64).tolist(),
        "age_ns": {name: np.asarray(age, np.int64).tolist() for name, age in ages.items()},
    }


def _write_messages(file: McapFile, episode: Episode, contract: RobotContract, columns: list[_Column], offset_ns: int) -> None:
    topics: dict[str, list[_Column]] = {}
    for column in columns:
        topics.setdefault(column.topic, []).append(column)
    observations = {c.channel.name: np.asarray(episode.observations[c.channel.name]).astype(c.channel.dtype, copy=False) for c in columns}
    actions = {"/action": episode.actions, "/action_applied": episode.action_applied}
    names = list(contract.action.names)
    for row, stamp_ns in enumerate(np.asarray(episode.stamps_ns, np.int64).tolist()):
        times = {"received_ns": stamp_ns + offset_ns, "sent_ns": stamp_ns + offset_ns, "sequence": row}
        for topic, parts in topics.items():
            values = [observations[column.channel.name][row] for column in parts]
            message = _observation(parts, values, _header(stamp_ns, parts[0].channel.frame))
            file.write(topic, parts[0].type, _serialised(message, parts[0].type), **times)
        if row == len(episode):
            return
        for topic, action in actions.items():
            if action is not None:
                message = _joint_state(_header(stamp_ns, ""), names, np.asarray(action[row], np.float32), "position")
                file.write(topic, _JOINT_STATE, _serialised(message, _JOINT_STATE), **times)
        reward = _make("std_msgs/msg/Float64", data=float(np.float32(episode.rewards[row])))
        file.write("/reward", "std_msgs/msg/Float64", _serialised(reward, "std_msgs/msg/Float64"), **times)


def _observation(parts: list[_Column], values: list[Array], header: Any) -> Any:
    kind, channel = parts[0].type, parts[0].channel
    if kind == _POSE:
        found = {part.field: value for part, value in zip(parts, values, strict=True)}
        position = _make("geometry_msgs/msg/Point", **_components("xyz", found["pose.position"]))
        turned = _make("geometry_msgs/msg/Quaternion", **_components("xyzw", found["pose.orientation"]))
        return _make(_POSE, header=header, pose=_make("geometry_msgs/msg/Pose", position=position, orientation=turned))
    if kind == _IMAGE:
        height, width, count = channel.shape
        pixels = values[0] if channel.row_order == "top_down" else values[0][::-1]
        size = {"height": height, "width": width, "step": width * count, "is_bigendian": 0}
        return _make(_IMAGE, header=header, encoding=channel.encoding, data=np.ascontiguousarray(pixels).reshape(-1), **size)
    if kind == _JOINT_STATE:
        return _joint_state(header, list(channel.names), values[0], parts[0].field)
    label = _make("std_msgs/msg/MultiArrayDimension", label=",".join(channel.names), size=channel.size, stride=channel.size)
    layout = _make("std_msgs/msg/MultiArrayLayout", dim=[label], data_offset=0)
    dtype = {"f": np.float64, "i": np.int64}.get(np.dtype(channel.dtype).kind, np.uint64)
    return _make(kind, layout=layout, data=values[0].astype(dtype))


def _joint_state(header: Any, names: list[str], values: Array, field: str) -> Any:
    fields = {"position": np.zeros(0), "velocity": np.zeros(0), "effort": np.zeros(0)}
    return _make(_JOINT_STATE, header=header, name=names, **{**fields, field: values.astype(np.float64)})


def _components(names: str, values: Array) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def _header(stamp_ns: int, frame: str) -> Any:
    seconds = min(max(stamp_ns // 10**9, -(2**31)), 2**31 - 1)  # a Time cannot say more; the record has the exact stamp
    stamp = _make("builtin_interfaces/msg/Time", sec=seconds, nanosec=stamp_ns % 10**9)
    return _make("std_msgs/msg/Header", stamp=stamp, frame_id=frame)


def _make(message_type: str, **fields: Any) -> Any:
    kind: Any = _STORE.types[message_type]
    return kind(**fields)


def _serialised(message: Any, message_type: str) -> bytes:
    return bytes(_STORE.serialize_cdr(message, message_type))


def _signed(values: Mapping[str, Any]) -> dict[str, str]:
    text = json.dumps(values, sort_keys=True)
    return {"json": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}  # MCAP guards messages by checksums, records not


# -- reading --------------------------------------------------------------------------------------------------------------------


def is_written_dataset(reader: BagReader) -> bool:
    """Whether the bag, of which the first message was read, is one that `write_bag` wrote."""
    return any(name == DATASET for name, _ in reader.metadata)


def read_written_dataset(reader: BagReader, messages: Iterable[BagMessage]) -> Dataset:
    """The episodes that are whole.

    Args:
        reader: of the bag.
        messages: all of it.

    Raises:
        DatasetError: the contract or a record is damaged, of another version, or rows are missing.
    """
    header = _verified(next(values for name, values in reader.metadata if name == DATASET))
    if header.get("format_version") != VERSION:
        raise DatasetError(f"format_version {header.get('format_version')!r}; this Armstack reads version {VERSION}")
    try:
        contract = RobotContract.from_json(json.dumps(header["contract"]))
    except (KeyError, ContractError) as error:
        raise DatasetError(f"record {DATASET}: {describe(error)}") from error
    rows: dict[str, list[Any]] = {}
    for message in messages:
        rows.setdefault(message.topic, []).append(reader.types.decode(message))
    columns = _columns(contract)
    taken = {topic: iter(values) for topic, values in rows.items()}
    records = [values for name, values in reader.metadata if name == EPISODE]
    return Dataset(contract=contract, episodes=tuple(_episode(_verified(r), contract, columns, taken) for r in records))


def _episode(facts: dict[str, Any], contract: RobotContract, columns: list[_Column], taken: Mapping[str, Iterator[Any]]) -> Episode:
    steps, action = int(facts["steps"]), contract.action
    messages = {topic: _next(taken, topic, steps + 1) for topic in {column.topic for column in columns}}
    observations = {
        c.channel.name: np.stack([_value(message, c) for message in messages[c.topic]]).astype(c.channel.dtype, copy=False) for c in columns
    }

    def actions(topic: str) -> NDArray[np.float32]:
        found = [numbers(m, "position", action.names, found_as={}, where=f"topic {topic}") for m in _next(taken, topic, steps)]
        return np.stack([row for row in found if row is not None]).astype(np.float32)

    return Episode(
        observations=observations,
        actions=actions("/action"),
        rewards=np.array([message.data for message in _next(taken, "/reward", steps)], np.float32),
        action_applied=actions("/action_applied") if facts["action_applied"] else None,
        stamps_ns=np.array(facts["stamps_ns"], np.int64),
        observation_age_ns={name: np.array(age, np.int64) for name, age in facts["age_ns"].items()},
        **fields_from(facts),
    )


def _next(taken: Mapping[str, Iterator[Any]], topic: str, count: int) -> list[Any]:
    found = list(itertools.islice(taken.get(topic, iter(())), count))
    if len(found) != count:
        raise DatasetError(f"topic {topic}: {len(found)} messages for an episode that needs {count}")
    return found


def _value(message: Any, column: _Column) -> Array:
    where = f"topic {column.topic}"
    if column.type == _IMAGE:
        return picture(message, column.channel, where=where)
    value = numbers(message, column.field, column.channel.names, found_as={}, where=where)
    if value is None:
        raise DatasetError(f"{where}: other names than {column.channel.names}")
    return value


def _verified(record: Mapping[str, str]) -> dict[str, Any]:
    text = record.get("json", "")
    if hashlib.sha256(text.encode()).hexdigest() != record.get("sha256"):
        raise DatasetError("a record of the dataset is damaged: its checksum differs")
    values: dict[str, Any] = json.loads(text)
    return values
