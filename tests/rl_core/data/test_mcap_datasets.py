"""Datasets written as MCAP."""

from __future__ import annotations

import dataclasses
import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap_ros2.reader import read_ros2_messages
from rosbags.rosbag2 import Reader

from rl_core.contract import Channel, RobotContract
from rl_core.data.episode import Dataset, Episode
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats import bag_dataset
from rl_core.data.formats.mcap import McapFormat
from tests.rl_core.data.rich_dataset import rich_dataset


def test_a_written_dataset_opens_in_rosbags_and_mcap_ros2_and_comes_back_to_the_bit(tmp_path: Path) -> None:
    dataset = rich_dataset()
    McapFormat().write(dataset, tmp_path / "data.mcap")
    assert fingerprint(McapFormat().read(tmp_path / "data.mcap")) == fingerprint(dataset)
    steps = dataset.steps
    with Reader(tmp_path / "data.mcap") as reader:
        counts = {c.topic: c.msgcount for c in reader.connections}
        times = [stamp for c, stamp, _ in reader.messages() if c.topic == "/action"]
    assert counts["/action"] == counts["/reward"] == steps
    assert times == sorted(times) and len(set(times)) == steps  # one episode after the other
    found: dict[str, int] = {}
    for message in read_ros2_messages(str(tmp_path / "data.mcap")):
        found[message.channel.topic] = found.get(message.channel.topic, 0) + 1
    assert found == counts


def test_odd_channels_and_values_come_back(tmp_path: Path, contract: RobotContract, make_episode: Callable[..., Episode]) -> None:
    odd = {
        "counter": np.array([2**62 + 1, -5, 0, 7], np.int64)[:, None],
        "big": np.array([2**64 - 1, 0, 1, 2], np.uint64)[:, None],
        "flag": np.array([True, False, True, True])[:, None],
        "state": np.array([[np.nan, np.inf], [1e-300, -0.0], [1.0, 2.0], [0.1, 0.2]]),
        "small": np.array([[1], [2], [3], [255]], np.uint8),
        "picture": np.random.default_rng(0).integers(0, 256, (4, 2, 3, 1)).astype(np.uint8),
    }
    channels = [
        Channel(name=n, names=tuple(f"{n}_{i}" for i in range(v.shape[1])), dtype=str(v.dtype)) for n, v in odd.items() if v.ndim == 2
    ]
    channels.append(Channel(name="picture", kind="image", shape=(2, 3, 1), encoding="mono8", row_order="bottom_up"))
    episode = make_episode(0, 3)
    stamps = np.array([-7, 5, 2**62, 3], np.int64)
    episode = dataclasses.replace(
        episode, observations={**episode.observations, **odd}, stamps_ns=stamps, meta={"é": [1, None]},
        observation_age_ns={"counter": np.array([-1, 2**40, 0, 3])}, action_applied=episode.actions * 0.5, success=None,
    )  # fmt: skip
    dataset = Dataset(contract=dataclasses.replace(contract, observation=(*contract.observation, *channels)), episodes=(episode, episode))
    McapFormat().write(dataset, tmp_path / "odd.mcap")
    assert fingerprint(McapFormat().read(tmp_path / "odd.mcap")) == fingerprint(dataset)


def test_an_older_file_is_replaced_whole_or_not_at_all(
    tmp_path: Path, make_dataset: Callable[..., Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = make_dataset((3, 2))
    path = tmp_path / "data.mcap"
    McapFormat().write(make_dataset((5,)), path)
    McapFormat().write(dataset, path)
    assert fingerprint(McapFormat().read(path)) == fingerprint(dataset)
    facts = bag_dataset._facts

    def full_at_the_second(episode: Episode, contract: RobotContract) -> dict[str, Any]:
        if episode.uuid == other.episodes[1].uuid:
            raise OSError(errno.ENOSPC, "No space left on device")
        return facts(episode, contract)

    other = make_dataset((4, 6))
    monkeypatch.setattr(bag_dataset, "_facts", full_at_the_second)
    with pytest.raises(OSError, match="No space left"):
        McapFormat().write(other, path)
    assert fingerprint(McapFormat().read(path)) == fingerprint(dataset)
    assert [file.name for file in tmp_path.iterdir()] == ["data.mcap"]
