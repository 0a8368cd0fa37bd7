"""What the filter let through, from the targets an arm says it follows, and rewards from their topic."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rl_core.contract import Action, Channel, Gripper, RobotContract
from rl_core.data.episode import Episode
from rl_core.data.formats.bag_applied import Targets, applied_actions, can_be_told, joints_needed
from rl_core.data.formats.mcap import McapFormat
from tests.rl_core.data import bag_messages as bags
from tests.rl_core.data.bag_messages import MAPPING, MS, START_NS, write_foreign_bag

FINGER = Gripper(name="finger", open=0.08, closed=0.0)
STAMPS = np.array([0, 100, 200, 300])
SOME = np.full((3, 3), 0.5)


def joint_contract(meaning: str) -> RobotContract:
    position = Channel(name="joint_pos", names=("a", "b", "c"), unit="rad")
    action = Action(
        names=("c", "a", "finger"), meaning=meaning, space="joint", scale=(0.5, 0.25, 1.0), units=("rad", "rad", "m"), frame="",
        period_s=0.1, gripper=FINGER,
    )  # fmt: skip
    return RobotContract(robot="arm", observation=(position,), action=action)


@pytest.mark.parametrize(
    ("meaning", "expected"),
    [
        ("delta", [[0.4, 0.8], [0.4, 0.8], [0.2, 0.4]]),
        ("absolute", [[0.6, 2.8], [0.6, 2.8], [0.6, 2.8]]),
        ("velocity", [[4, 8], [4, 8], [2, 4]]),
    ],
)
def test_joint_targets_become_actions_by_name_counted_from_what_was_measured(meaning: str, expected: list[list[float]]) -> None:
    contract = joint_contract(meaning)
    measured = {"joint_pos": np.array([[0.5, 9.0, 0.1], [0.5, 9.0, 0.1], [0.6, 9.0, 0.2], [0.0, 0.0, 0.0]])}
    assert joints_needed(contract, FINGER) == ("c", "a", "finger") and can_be_told(contract, FINGER)
    # the first is in force for the first two steps: what comes with the observation after a step is no part of it
    targets = Targets(stamps_ns=np.array([5, 300]), values=np.array([[0.3, 0.7, 0.08], [9.0, 9.0, 0.0]]))
    found = applied_actions(contract, SOME, STAMPS, measured, targets, None, FINGER)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[:, :2], expected, rtol=1e-6)
    assert found[:, 2].tolist() == [-1, -1, -1]


def test_before_the_first_target_the_action_counts_that_was_asked_for() -> None:
    targets = Targets(stamps_ns=np.array([100]), values=np.array([[0.0, 0.0, 0.0]]))
    found = applied_actions(joint_contract("absolute"), SOME, STAMPS, {"joint_pos": np.zeros((4, 3))}, targets, None, FINGER)
    assert found.tolist() == [[0.5, 0.5, 0.5], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]


def pose_contract(meaning: str) -> RobotContract:
    channels = (
        Channel(name="eef_pos", names=("x", "y", "z"), unit="m", frame="base"),
        Channel(name="eef_quat", kind="quaternion", frame="base"),
    )
    # the gripper counts as a share of its opening, in a direction of its own: the arm's own values say what a target means
    share = Gripper(name="gripper", open=1.0, closed=0.0, unit="1")
    action = Action(
        names=("rx", "ry", "rz", "x", "y", "z", "gripper"), meaning=meaning, space="end_effector", scale=(0.5,) * 3 + (0.05,) * 3 + (1.0,),
        units=("rad",) * 3 + ("m",) * 3 + ("1",), gripper=share,
    )  # fmt: skip
    return RobotContract(robot="arm", observation=channels, action=action)


@pytest.mark.parametrize("meaning", ["delta", "absolute"])
def test_target_poses_become_end_effector_actions_in_the_frame_of_the_base(meaning: str) -> None:
    rng = np.random.default_rng(0)
    position, turned = rng.normal(size=(4, 3)), Rotation.random(4, random_state=0)
    moves, turns = rng.uniform(-0.05, 0.05, (3, 3)), rng.uniform(-0.5, 0.5, (3, 3))
    if meaning == "delta":
        goal, goal_turned = position[:3] + moves, Rotation.from_rotvec(turns) * turned[:3]
    else:
        goal, goal_turned = moves, Rotation.from_rotvec(turns)
    poses = Targets(stamps_ns=STAMPS[:3] + 10, values=np.concatenate([goal, goal_turned.as_quat()], axis=1))
    joints = Targets(stamps_ns=np.array([0, 110]), values=np.array([[0.08], [0.02]]))
    contract = pose_contract(meaning)
    measured = {"eef_pos": position, "eef_quat": turned.as_quat()}
    assert joints_needed(contract, FINGER) == ("finger",) and can_be_told(contract, FINGER)
    found = applied_actions(contract, np.zeros((3, 7)), STAMPS, measured, joints, poses, FINGER)
    np.testing.assert_allclose(found[:, :3], turns / 0.5, atol=1e-6)
    np.testing.assert_allclose(found[:, 3:6], moves / 0.05, atol=1e-6)
    np.testing.assert_allclose(found[:, 6], [-1, 0.5, 0.5])


def test_what_cannot_be_told_is_not_made_up() -> None:
    assert not can_be_told(joint_contract("delta"), None)
    assert not can_be_told(dataclasses.replace(joint_contract("delta"), observation=(Channel(name="joint_pos", names=("a", "b")),)), FINGER)
    assert not can_be_told(dataclasses.replace(pose_contract("delta"), observation=pose_contract("delta").observation[:1]), FINGER)
    tool = dataclasses.replace(pose_contract("delta").action, frame="tool")
    assert not can_be_told(dataclasses.replace(pose_contract("delta"), action=tool), FINGER)


def graph_bag(folder: Path, contract: RobotContract, extra: list[bags.Sent]) -> Episode:
    """Three joint deltas 0.5, a joint's position is 0.1 k at step k; `arm/contract` says the gripper."""
    offer = {"contracts": [json.loads(contract.to_json())], "limits": {"gripper": dataclasses.asdict(FINGER)}}
    record = {"index": 0, "stamp_ns": START_NS, "phase": "running"}
    messages = [bags.text("/arm/contract", START_NS - MS, json.dumps(offer)), bags.text("/episode", START_NS, json.dumps(record))]
    for k in range(4):
        stamp = START_NS + 100 * MS * k
        messages.append(bags.joint_state("/joint_states", stamp, {"c": 0.2 * k, "b": 0.0, "a": 0.1 * k}))
        if k < 3:
            messages.append(bags.joint_state("/policy/action", stamp, dict.fromkeys(contract.action.names, 0.5)))
    messages.append(bags.text("/episode", START_NS + 301 * MS, json.dumps({**record, "phase": "over"})))
    write_foreign_bag(folder, sorted([*messages, *extra], key=lambda m: m[3]))
    (episode,) = McapFormat().read(folder).episodes
    return episode


def test_a_bag_of_our_graph_gives_what_was_let_through_and_the_rewards(tmp_path: Path) -> None:
    targets = [
        bags.trajectory("/arm/target", START_NS + at * MS, {"a": a, "b": 0.0, "c": c, "finger": 0.08}, first_s=0.0)
        for at, a, c in ((0, 0.125, 0.25), (100, 0.2, 0.3), (250, 0.2, 0.4))
    ]
    rewards = [
        bags.joint_state("/sim/reward", START_NS + at * MS, {"reward": value})
        for at, value in ((0, 9), (60, 1), (100, 2), (250, 4), (300, 8))
    ]
    episode = graph_bag(tmp_path / "bag", joint_contract("delta"), [*targets, *rewards])
    assert episode.action_applied is not None
    # c by 0.5 rad, a by 0.25: 0.25, 0.1 and 0 of the 0.25 asked for; the action itself stays what was asked for
    np.testing.assert_allclose(episode.action_applied, [[0.5, 0.5, -1], [0.2, 0.4, -1], [0.0, 0.0, -1]], atol=1e-6)
    assert episode.actions.tolist() == [[0.5] * 3] * 3
    assert episode.rewards.tolist() == [3, 0, 12]  # after the observation, up to the next with it


def test_an_older_bag_without_targets_and_rewards_holds_neither(tmp_path: Path) -> None:
    episode = graph_bag(tmp_path / "bag", joint_contract("delta"), [])
    assert episode.action_applied is None and not episode.rewards.any()


def test_rewards_of_a_foreign_bag_are_read_where_a_mapping_says(tmp_path: Path) -> None:
    def reward(at: int, value: float) -> bags.Sent:
        message: Any = bags.make("std_msgs/msg/Float32", data=value)
        return "/reward", "std_msgs/msg/Float32", message, START_NS + at * MS

    bag = write_foreign_bag(
        tmp_path / "bag", [*bags.bench_arm(), *(reward(at, value) for at, value in ((90, 1.0), (100, 2.0), (401, 4.0)))]
    )
    (bag / "mapping.yaml").write_text(MAPPING + "rewards: {topic: /reward}\n")
    (episode,) = McapFormat().read(bag).episodes
    assert episode.rewards.tolist() == [3, 0, 0, 0, 4]
