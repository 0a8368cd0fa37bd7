"""The mapping file: what is wrong in it is said with the key and what would be valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_core.data.episode import DatasetError
from rl_core.data.formats.bag_mapping import ActionSource, ChannelSource, read_mapping
from tests.rl_core.data.bag_messages import MAPPING


def _read(folder: Path, text: str):
    (folder / "mapping.yaml").write_text(text)
    return read_mapping(folder / "mapping.yaml")


def test_a_mapping_says_where_channels_are(tmp_path: Path) -> None:
    mapping = _read(tmp_path, MAPPING + "episodes: /episode\n")
    assert mapping.observation["joint_pos"] == ChannelSource(topic="/joint_states", names={"shoulder": "j1", "elbow": "j2"})
    assert mapping.action == ActionSource(topic="/arm/goal", names={"shoulder": "j1", "elbow": "j2", "gripper": "finger"}, values="units")
    assert mapping.contract is not None and mapping.contract.action.gripper is not None
    assert mapping.topics == {"/joint_states", "/arm/goal", "/episode"}


JOINTS = "joint_pos: {topic"
WRONG = {
    "observation:\n  joint_pos: {topic: /a}": "mapping: key action is missing; valid: observation, action, contract",
    MAPPING + "rate: 3": "mapping: unknown key rate; valid: observation, action, contract, action_applied, rewards, episodes",
    MAPPING + "action: {topic: /b}": "not readable as YAML: .*duplicate key",
    MAPPING.replace("{topic: /arm/goal,", "{topik: /arm/goal,"): "action: unknown key topik; valid: topic, field, names, stamp, values",
    MAPPING.replace("{topic: /arm/goal", "{align: hold, topic: /arm/goal"): "action: unknown key align",
    MAPPING.replace(
        "gripper_pos: {topic", "gripper: {topic"
    ): r"observation names \['gripper'\]; channels of the contract: \['gripper_pos'",
    MAPPING.replace("  gripper_pos: {topic: /joint_states, names: {gripper: finger}}\n", ""): r"observation lacks \['gripper_pos'\]",
    MAPPING.replace("elbow: j2}}", "ellbow: j2}}", 1): r"names maps \['ellbow'\]; dimensions of the contract: \['shoulder', 'elbow'\]",
    MAPPING.replace(JOINTS, "joint_pos: {align: newest, topic"): "joint_pos.align: 'newest', valid: hold, as_of, drop",
    MAPPING.replace(JOINTS, "joint_pos: {max_age_s: -1, topic"): "joint_pos.max_age_s: -1, valid: a number of seconds above 0",
    MAPPING.replace(JOINTS, "joint_pos: {max_age_s: .nan, topic"): "joint_pos.max_age_s: nan",
    MAPPING.replace(JOINTS, "joint_pos: {stamp: now, topic"): "joint_pos.stamp: 'now', valid: header, sent",
    MAPPING.replace("topic: /arm/goal", "topic: 7"): "action.topic: 7, valid: a text",
    MAPPING.replace("{topic: /arm/goal,", "{topic: '',"): "action.topic is empty",
    MAPPING.replace("scale: [3.14, 2.0, 1.0]", "scale: [3.14, 2.0]"): "contract: action: 2 entries in scale for 3 names",
    MAPPING.replace("robot: bench_arm", "robots: bench_arm"): "contract: contract has a wrong or missing field: 'robot'",
    "[1, 2]": "mapping: list, valid: keys and values",
    "a: [": "not readable as YAML",
    "!!python/object/apply:os.getcwd []": "not readable as YAML",
}


@pytest.mark.parametrize(("changed", "said"), WRONG.items())
def test_what_is_wrong_in_a_mapping_is_named(tmp_path: Path, changed: str, said: str) -> None:
    with pytest.raises(DatasetError, match=f"(?s){said}") as caught:
        _read(tmp_path, changed)
    assert "mapping.yaml" in str(caught.value)


def test_a_mapping_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="nothing.yaml: not readable"):
        read_mapping(tmp_path / "nothing.yaml")
