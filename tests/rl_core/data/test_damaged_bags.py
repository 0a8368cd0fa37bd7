"""Bags that are cut short or have wrong bytes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.formats import bag_stream
from rl_core.data.formats.mcap import McapFormat
from tests.rl_core.data.bag_messages import MAPPING, bench_arm, only, write_foreign_bag
from tests.rl_core.data.graph_bags import write_graph_bag


def _spoiled(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.5:
        return data[: rng.randrange(len(data))]
    spoiled = bytearray(data)
    for _ in range(rng.choice([1, 1, 3, 20])):
        spoiled[rng.randrange(len(spoiled))] ^= 1 << rng.randrange(8)
    return bytes(spoiled)


@pytest.mark.parametrize("kind", ["written", "graph", "foreign"])
def test_truncated_or_flipped_bytes_give_finished_episodes_or_a_dataset_error(
    tmp_path: Path, kind: str, contract: RobotContract, make_dataset: Callable[..., Dataset]
) -> None:
    if kind == "written":
        file = tmp_path / "data.mcap"
        McapFormat().write(make_dataset((3, 4, 2)), file)
    elif kind == "graph":
        write_graph_bag(tmp_path / "bag", contract)
        (file,) = (tmp_path / "bag").glob("*.mcap")
    else:
        (file,) = write_foreign_bag(tmp_path / "bag", bench_arm()).glob("*.mcap")
        (file.with_suffix(".mapping.yaml")).write_text(MAPPING)
    whole = {e.uuid: e for e in McapFormat().read(file).episodes}
    data = file.read_bytes()
    rng = random.Random(kind)
    outcomes = {"read": 0, "refused": 0}
    for _ in range(50):
        file.write_bytes(_spoiled(data, rng))
        try:
            found = McapFormat().read(file)
        except DatasetError as error:
            assert file.name in str(error)
            outcomes["refused"] += 1
            continue
        outcomes["read"] += 1
        for episode in found.episodes:
            np.testing.assert_array_equal(episode.actions, whole[episode.uuid].actions)
            for name, values in episode.observations.items():
                np.testing.assert_array_equal(values, whole[episode.uuid].observations[name])
    assert outcomes["refused"] > 5 and outcomes["read"] > 5


def test_a_damaged_message_or_an_unknown_type_is_a_dataset_error() -> None:
    types = bag_stream.BagTypes()
    message = {"topic": "/x", "sent_ns": 0, "received_ns": 0}
    with pytest.raises(DatasetError, match="topic /x: a message is no sensor_msgs/msg/JointState"):
        types.decode(bag_stream.BagMessage(type="sensor_msgs/msg/JointState", data=b"\x00\x01\x00\x00\xff\xff", **message))
    with pytest.raises(DatasetError, match="no definition of message type 'my_msgs/msg/Secret'"):
        types.decode(bag_stream.BagMessage(type="my_msgs/msg/Secret", data=b"", **message))


@pytest.mark.parametrize("text", ["", "[]", "rosbag2_bagfile_information: {version: 9}", "a: ["])
def test_a_folder_whose_metadata_cannot_be_read_is_a_dataset_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "metadata.yaml").write_text(text)
    assert McapFormat().matches(tmp_path)
    with pytest.raises(DatasetError, match="metadata.yaml: not readable"):
        McapFormat().read(tmp_path)


def test_a_damaged_sqlite_bag_is_a_dataset_error(tmp_path: Path) -> None:
    bag = write_foreign_bag(tmp_path / "bag", bench_arm(), mcap=False)
    (bag / "mapping.yaml").write_text(MAPPING)
    (file,) = bag.glob("*.db3")
    data = file.read_bytes()
    rng = random.Random(0)
    for _ in range(30):
        file.write_bytes(_spoiled(data, rng))
        try:
            assert len(only(McapFormat().read(bag))) <= 5
        except DatasetError as error:
            assert "bag" in str(error)
