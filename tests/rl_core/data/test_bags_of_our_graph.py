"""Bags of our own graph need no mapping."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rl_core.contract import RobotContract
from rl_core.data.episode import DatasetError
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats.bag import recover
from rl_core.data.formats.bag_episodes import EpisodeStream
from rl_core.data.formats.bag_stream import BagMessage
from rl_core.data.formats.mcap import McapFormat
from tests.rl_core.data import bag_messages as bags
from tests.rl_core.data.bag_messages import MS, START_NS
from tests.rl_core.data.graph_bags import graph_messages, serialised, write_graph_bag


@pytest.mark.parametrize("namespace", ["", "left"])
def test_a_bag_of_our_graph_needs_no_mapping(tmp_path: Path, contract: RobotContract, namespace: str) -> None:
    write_graph_bag(tmp_path / "bag", contract, namespace=namespace)
    dataset = McapFormat().read(tmp_path / "bag")
    assert dataset.contract == contract and len(dataset) == 2
    for index, episode in enumerate(dataset.episodes):
        values = np.float32([index + 0.1 * k for k in range(5)])
        assert episode.stamps_ns.tolist() == [index * 200 * MS + 50 * MS * k for k in range(5)]
        np.testing.assert_array_equal(episode.observations["joint_pos"], np.repeat(values[:, None], 7, axis=1))
        np.testing.assert_array_equal(episode.observations["cube_pos"][:, 0], values)
        np.testing.assert_array_equal(episode.observations["gripper_to_cube_pos"], np.stack([values, -values, 0 * values], axis=1))
        np.testing.assert_array_equal(episode.actions, np.float32([[(index + 0.1 * k) / 10] * 7 for k in range(4)]))
        assert (episode.success, episode.truncated, episode.terminal) == (index == 1, True, False)
        assert episode.meta["seed"] == index + 5 and episode.meta["return"] == 1.5
        assert episode.meta["gaps"] == {"/joint_states": {"received": 5, "lost": 1, "dropped": 2}}
        assert "gripper_to_cube_pos" not in episode.observation_age_ns and "cube_pos" in episode.observation_age_ns


def test_two_arms_in_one_bag_are_an_error(tmp_path: Path, contract: RobotContract) -> None:
    bag = write_graph_bag(tmp_path / "bag", contract, namespace="left", close=False)
    message = bags.text("/right/arm/contract", START_NS, "{}")
    bag.write("/right/arm/contract", message[1], serialised(message[1], message[2]), received_ns=START_NS, sent_ns=START_NS, sequence=0)
    bag.close()
    with pytest.raises(DatasetError, match=r"more than one arm: \['/left/arm/contract', '/right/arm/contract'\]"):
        McapFormat().read(tmp_path / "bag")


def test_crash_while_recording_leaves_the_finished_episodes(
    tmp_path: Path, contract: RobotContract, caplog: pytest.LogCaptureFixture
) -> None:
    bag = write_graph_bag(tmp_path / "bag", contract, episodes=3, close=False)
    bag.flush()
    size = bag.file.stat().st_size
    for topic, kind, message, sent_ns in graph_messages(contract, 3)[:12]:
        bag.write(topic, kind, serialised(kind, message), received_ns=sent_ns, sent_ns=sent_ns, sequence=0)
    bag.flush()
    data = bag.file.read_bytes()
    bag.close()
    (tmp_path / "bag" / "metadata.yaml").unlink()
    bag.file.write_bytes(data[: size + 40])
    killed = McapFormat().read(tmp_path / "bag")  # nothing came after the third: what it saw last may be missing
    assert [episode.meta["index"] for episode in killed.episodes] == [0, 1]
    assert "2 finished episodes are kept" in caplog.text
    bag.file.write_bytes(data)  # killed a flush later: the fourth was under way
    killed = McapFormat().read(tmp_path / "bag")
    assert [episode.meta["index"] for episode in killed.episodes] == [0, 1, 2]
    assert recover(tmp_path / "bag") > 0
    assert fingerprint(McapFormat().read(tmp_path / "bag")) == fingerprint(killed)


def test_a_recorder_knows_what_it_does_not_hear_yet(contract: RobotContract) -> None:
    stream = EpisodeStream(None, namespace="left")
    assert stream.awaits(set(), set()) == ["/left/arm/contract"]
    offer = json.dumps({"contracts": [json.loads(contract.to_json())], "limits": {}})
    topic, kind, message, sent_ns = bags.text("/left/arm/contract", START_NS, offer)
    data = serialised(kind, message)
    assert not stream.add(BagMessage(topic=topic, type=kind, data=data, sent_ns=sent_ns, received_ns=sent_ns))
    observed = {"/left/joint_states", "/left/ee_pose", "/left/objects/cube/pose"}
    others = {"/left/policy/action", "/left/episode", "/left/arm/target", "/left/arm/target_pose"}
    assert set(stream.awaits(set(), set())) == observed | others
    assert set(stream.awaits(observed | others, observed - {"/left/ee_pose"})) == {"/left/ee_pose"}
    assert stream.awaits(observed | others, observed) == []
