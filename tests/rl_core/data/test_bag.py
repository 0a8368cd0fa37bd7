"""Bags: written, killed, made whole, read by rosbags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore

from rl_core.data.formats.bag import BagError, BagWriter, is_closed, next_folder, recover

TYPES = get_typestore(Stores.ROS2_KILTED)


def _joint_state(number: int) -> bytes:
    kinds: Any = TYPES.types
    stamp = kinds["builtin_interfaces/msg/Time"](sec=number, nanosec=0)
    header = kinds["std_msgs/msg/Header"](stamp=stamp, frame_id="")
    positions, nothing = np.array([float(number), 0.1]), np.array([])
    state = kinds["sensor_msgs/msg/JointState"](header=header, name=["a", "b"], position=positions, velocity=nothing, effort=nothing)
    return bytes(TYPES.serialize_cdr(state, "sensor_msgs/msg/JointState"))


def _write(bag: BagWriter, count: int) -> None:
    for i in range(count):
        stamps = {"received_ns": 1000 + i, "sent_ns": 900 + i}
        bag.write("/joint_states", "sensor_msgs/msg/JointState", _joint_state(i), **stamps, sequence=i)
    kinds: Any = TYPES.types
    text = bytes(TYPES.serialize_cdr(kinds["std_msgs/msg/String"](data="{}"), "std_msgs/msg/String"))
    bag.write("/episode", "std_msgs/msg/String", text, received_ns=5000, sent_ns=4000, sequence=1)


def _read(path: Path) -> list[tuple[str, int, Any]]:
    with Reader(path) as reader:
        return [(c.topic, stamp, TYPES.deserialize_cdr(data, c.msgtype)) for c, stamp, data in reader.messages()]


def test_a_bag_opens_in_rosbags_with_receive_and_header_stamps(tmp_path: Path) -> None:
    bag = BagWriter(tmp_path / "bag")
    _write(bag, 5)
    bag.write_metadata("episode", {"index": "0"})
    bag.close({"gaps": "{}"})
    for path in (tmp_path / "bag", bag.file):
        messages = _read(path)
        states = [(stamp, message) for topic, stamp, message in messages if topic == "/joint_states"]
        assert [stamp for stamp, _ in states] == [1000 + i for i in range(5)]
        assert [message.header.stamp.sec for _, message in states] == list(range(5))
        assert [message.position.tolist() for _, message in states] == [[float(i), 0.1] for i in range(5)]


def test_crash_while_recording_leaves_a_bag_that_can_be_made_whole(tmp_path: Path) -> None:
    bag = BagWriter(tmp_path / "bag")
    _write(bag, 1000)
    bag.flush()
    _write(bag, 10)
    size = bag.file.stat().st_size
    bag.close()
    (tmp_path / "bag" / "metadata.yaml").unlink()
    with open(bag.file, "r+b") as stream:  # the kill came in the middle of the chunk after the flush
        stream.truncate(size + 40)
    assert not is_closed(tmp_path / "bag")
    assert recover(tmp_path / "bag") == 1001
    assert is_closed(tmp_path / "bag")
    assert len(_read(tmp_path / "bag")) == 1001
    with Reader(tmp_path / "bag") as reader:
        assert {c.topic: c.msgcount for c in reader.connections} == {"/joint_states": 1000, "/episode": 1}


def test_a_type_without_definition_is_named(tmp_path: Path) -> None:
    bag = BagWriter(tmp_path / "bag")
    with pytest.raises(BagError, match="my_msgs/msg/Secret"):
        bag.write("/x", "my_msgs/msg/Secret", b"", received_ns=0, sent_ns=0, sequence=0)


def test_an_existing_bag_is_never_written_over(tmp_path: Path) -> None:
    BagWriter(tmp_path / "bag").close()
    with pytest.raises(BagError, match="exists"):
        BagWriter(tmp_path / "bag")
    assert next_folder(tmp_path / "bag") == tmp_path / "bag_1"
