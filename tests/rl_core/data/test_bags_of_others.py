"""Bags of other robots, read through a mapping."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path

import numpy as np
import pytest

from rl_core.data.checkup import check_dataset
from rl_core.data.episode import DatasetError
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats.bag_mapping import read_mapping
from rl_core.data.formats.mcap import McapFormat
from tests.rl_core.data import bag_messages as bags
from tests.rl_core.data.bag_messages import MAPPING, MS, START_NS, Sent, bench_arm, only, read_with_mapping, write_foreign_bag


@pytest.mark.parametrize("mcap", [True, False])
def test_a_foreign_bag_gives_joints_by_name_and_goals_as_policy_values(tmp_path: Path, mcap: bool) -> None:
    bag = write_foreign_bag(tmp_path / "bag", bench_arm(steps=5), mcap=mcap)
    dataset = read_with_mapping(bag)
    episode = only(dataset)
    assert dataset.contract.robot == "bench_arm" and len(episode) == 5
    np.testing.assert_array_equal(episode.stamps_ns, START_NS + 100 * MS * np.arange(6))
    np.testing.assert_array_equal(episode.observations["joint_pos"], np.float32([[0.1 * k, -0.1 * k] for k in range(0, 12, 2)]))
    np.testing.assert_array_equal(episode.observations["gripper_pos"], np.float32([[0.01 * (k % 8)] for k in range(0, 12, 2)]))
    # shoulder k/10 of 3.14 rad, elbow 1 of 2 rad, the gripper closed at first, then open
    np.testing.assert_allclose(episode.actions, [[k / 5, 0.5, -1.0 if k else 1.0] for k in range(5)], atol=1e-7)
    assert all((ages == 0).all() for ages in episode.observation_age_ns.values())
    assert episode.truncated and not episode.terminal and episode.success is None
    assert fingerprint(McapFormat().read(bag)) == fingerprint(dataset)


def test_the_same_through_a_single_file_and_a_mapping_beside_it_or_given(tmp_path: Path) -> None:
    bag = write_foreign_bag(tmp_path / "bag", bench_arm())
    whole = read_with_mapping(bag)
    (file,) = bag.glob("*.mcap")
    single = file.rename(tmp_path / "run.mcap")
    mapping = (bag / "mapping.yaml").rename(tmp_path / "run.mapping.yaml")
    assert McapFormat().matches(single)
    assert fingerprint(McapFormat().read(single)) == fingerprint(whole)
    given = McapFormat(read_mapping(mapping))
    mapping.unlink()
    assert fingerprint(given.read(single)) == fingerprint(whole)
    with pytest.raises(DatasetError, match=r"topics \['/arm/goal', '/joint_states'\]; a bag of another robot needs a mapping"):
        McapFormat().read(single)


def test_messages_out_of_order_give_the_same_episode(tmp_path: Path) -> None:
    messages = bench_arm()
    shuffled = list(messages)
    random.Random(0).shuffle(shuffled)
    one, other = (only(read_with_mapping(write_foreign_bag(tmp_path / name, m))) for name, m in (("in", messages), ("out", shuffled)))
    np.testing.assert_array_equal(one.actions, other.actions)
    np.testing.assert_array_equal(one.observations["joint_pos"], other.observations["joint_pos"])


def test_joints_of_several_publishers_on_one_topic_are_told_apart_by_name(tmp_path: Path) -> None:
    messages = bench_arm()
    parts: list[Sent] = []
    for topic, kind, message, sent_ns in messages:
        if topic == "/joint_states":
            found = dict(zip(message.name, message.position, strict=True))
            parts.append(bags.joint_state(topic, sent_ns, {"finger": found.pop("finger")}))
            parts.append(bags.joint_state(topic, sent_ns, found))
        else:
            parts.append((topic, kind, message, sent_ns))
    one, other = (only(read_with_mapping(write_foreign_bag(tmp_path / name, m))) for name, m in (("one", messages), ("two", parts)))
    np.testing.assert_array_equal(one.observations["gripper_pos"], other.observations["gripper_pos"])
    np.testing.assert_array_equal(one.observations["joint_pos"], other.observations["joint_pos"])


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"finger": 0.0, "j1": 0.0}, r"/joint_states.*position: \['j2'\] missing; found \['finger', 'j1'\], needed \['j1', 'j2'\]"),
        ({"a": 0.0, "b": 0.0, "c": 0.0}, None),
    ],
)
def test_a_joint_that_is_missing_by_name_is_an_error(tmp_path: Path, state: dict[str, float], said: str | None) -> None:
    messages = [bags.joint_state(t, sent, state) if t == "/joint_states" else (t, k, m, sent) for t, k, m, sent in bench_arm()]
    with pytest.raises(DatasetError, match=said or "no finished episode") as caught:
        read_with_mapping(write_foreign_bag(tmp_path / "bag", messages))
    assert str(tmp_path / "bag") in str(caught.value)


def test_a_topic_that_is_not_there_is_an_error_with_the_topics(tmp_path: Path) -> None:
    bag = write_foreign_bag(tmp_path / "bag", bench_arm())
    with pytest.raises(DatasetError, match=r"no topic \['/arm/gaol'\]; topics of the bag: \['/arm/goal', '/joint_states'\]"):
        read_with_mapping(bag, MAPPING.replace("topic: /arm/goal", "topic: /arm/gaol"))


def test_a_field_that_is_not_there_is_an_error_with_the_fields(tmp_path: Path) -> None:
    bag = write_foreign_bag(tmp_path / "bag", bench_arm())
    with pytest.raises(DatasetError, match=r"no field 'posture'.*effort.*position.*velocity"):
        read_with_mapping(bag, MAPPING.replace("joint_pos: {topic", "joint_pos: {field: posture, topic"))


def _late_states(late_ms: dict[int, int], missing: set[int]) -> list[Sent]:
    """Goals every 100 ms, states at the same times but for those that are late or missing; the shoulder's angle is its number."""
    messages = [bags.trajectory("/arm/goal", START_NS + 100 * MS * k, {"j1": 0.0, "j2": 0.0, "finger": 0.0}) for k in range(5)]
    for k in set(range(6)) - missing:
        stamp = START_NS + (100 * k + late_ms.get(k, 0)) * MS
        messages.append(bags.joint_state("/joint_states", stamp, {"j1": float(k), "j2": 0.0, "finger": 0.0}))
    return messages


@pytest.mark.parametrize(
    ("align", "shoulder", "ages_ms", "steps", "stale", "dropped"),
    [
        ("hold", [0, 0, 2, 2, 4, 5], [0, 100, 0, 100, 0, 0], [0, 1, 2, 3, 4], 2, 0),  # the state of 1 comes 30 ms after its goal
        ("as_of", [0, 1, 2, 4, 5], [0, -30, 0, 0, 0], [0, 1, 2, 4], 1, 1),  # it is nearest; none is within 50 ms of 3
        ("drop", [0, 2, 4, 5], [0, 0, 0, 0], [0, 2, 4], 2, 2),
    ],
)
def test_late_and_missing_samples_are_aligned_as_the_mapping_says_and_counted(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    align: str,
    shoulder: list[int],
    ages_ms: list[int],
    steps: list[int],
    stale: int,
    dropped: int,
) -> None:
    bag = write_foreign_bag(tmp_path / "bag", _late_states({1: 30}, missing={3}))
    mapping = MAPPING.replace("joint_pos: {topic", f"joint_pos: {{align: {align}, topic")
    dataset = read_with_mapping(bag, mapping.replace("gripper_pos: {topic", "gripper_pos: {max_age_s: 0.15, topic"))
    episode = only(dataset)
    assert episode.observations["joint_pos"][:, 0].tolist() == shoulder
    assert (episode.observation_age_ns["joint_pos"] / MS).tolist() == ages_ms
    assert episode.stamps_ns[:-1].tolist() == [START_NS + 100 * MS * k for k in steps]
    assert (episode.meta["stale"], episode.meta["steps_dropped"]) == ({"joint_pos": stale}, dropped)
    # a step before a gap leads over it: longer than a period, so it is counted, said, and found by the check-up
    bridging = int((np.diff([*steps, 5]) > 1).sum())
    assert episode.meta.get("steps_bridging", 0) == bridging == int((np.diff(episode.stamps_ns) > 100 * MS).sum())
    assert ("lead over the gap, longer than a period" in caplog.text) == bool(bridging)
    found = next(finding for finding in check_dataset(dataset).findings if finding.subject == "rate")
    assert (f"{bridging} steps took more than 1.5 periods" in found.found) == bool(bridging)


def test_the_last_action_is_left_out_where_nothing_was_seen_after_it(tmp_path: Path) -> None:
    episode = only(read_with_mapping(write_foreign_bag(tmp_path / "bag", _late_states({}, missing={5}))))
    assert len(episode) == 4 and episode.observations["joint_pos"][-1, 0] == 4


PICTURE = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)


def test_headers_without_stamps_are_an_error_and_the_time_of_sending_can_be_taken_instead(tmp_path: Path) -> None:
    unstamped = []
    for topic, kind, message, sent_ns in bench_arm():
        if topic == "/joint_states":
            message = dataclasses.replace(message, header=bags.header(0))
        unstamped.append((topic, kind, message, sent_ns))
    with pytest.raises(DatasetError, match="/joint_states: its headers have no stamp; valid: .*stamp: sent"):
        read_with_mapping(write_foreign_bag(tmp_path / "bag", unstamped))
    sent = read_with_mapping(tmp_path / "bag", MAPPING.replace("{topic: /joint_states", "{stamp: sent, topic: /joint_states"))
    stamped = read_with_mapping(write_foreign_bag(tmp_path / "stamped", bench_arm()))
    np.testing.assert_array_equal(only(sent).observations["joint_pos"], only(stamped).observations["joint_pos"])


def test_the_first_point_of_a_trajectory_that_is_not_past_is_the_action_and_what_was_applied_is_read_too(tmp_path: Path) -> None:
    messages = [m for m in bench_arm() if m[0] == "/joint_states"]
    for k in range(5):
        stamp = START_NS + 100 * MS * k
        past, now, later = ({"j1": v, "j2": 0.0, "finger": 0.0} for v in (3.14, 1.57, 0.0))
        messages.append(bags.trajectory("/arm/goal", stamp, past, now, later, first_s=-0.05))
        if k != 3:
            messages += [bags.joint_state("/applied", stamp + 10 * MS, {"j1": 0.0, "j2": 1.0, "finger": 0.08})]
            messages += [bags.joint_state("/applied", stamp + 90 * MS, {"j1": 3.14, "j2": 1.0, "finger": 0.08})]
    mapping = MAPPING + "action_applied: {topic: /applied, names: {shoulder: j1, elbow: j2, gripper: finger}}\n"
    episode = only(read_with_mapping(write_foreign_bag(tmp_path / "bag", messages), mapping))
    np.testing.assert_allclose(episode.actions, [[0.5, 0.0, 1.0]] * 5)
    applied = [[1.0, 0.5, -1.0]] * 5
    applied[3] = [0.5, 0.0, 1.0]  # nothing was said: what was asked for
    assert episode.action_applied is not None
    np.testing.assert_allclose(episode.action_applied, applied)


def test_records_cut_a_foreign_bag_into_episodes_with_their_facts(tmp_path: Path) -> None:
    messages = bench_arm(steps=10)
    records = [
        (-1, {"index": 0, "seed": 3, "phase": "running"}),
        (450, {"index": 0, "seed": 3, "phase": "running", "success": True}),
        (451, {"index": 0, "seed": 3, "phase": "over", "success": True, "terminal": True}),
        (599, {"index": 1, "seed": 4, "phase": "running"}),
    ]
    messages += [bags.text("/episode", START_NS + at * MS, json.dumps(record)) for at, record in records]
    dataset = read_with_mapping(write_foreign_bag(tmp_path / "bag", sorted(messages, key=lambda m: m[3])), MAPPING + "episodes: /episode\n")
    first, second = dataset.episodes
    assert (len(first), first.success, first.terminal, first.truncated, first.meta["seed"]) == (5, True, True, False, 3)
    assert (len(second), second.success, second.truncated, second.meta["phase"]) == (4, None, True, "cut")
    assert second.stamps_ns[0] == START_NS + 600 * MS


def test_the_mapping_in_the_how_to_reads_a_bag(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/record-and-read-bags.md").read_text()
    mapping = page.split("```yaml\n")[1].split("```")[0]
    pictures = [bags.image("/camera/color/image_raw", START_NS + at * MS, PICTURE, "bgr8") for at in (0, 150, 450, 500)]
    record = {"index": 0, "phase": "running"}
    records = [bags.text("/episode", START_NS - MS, json.dumps(record))]
    episode = only(read_with_mapping(write_foreign_bag(tmp_path / "bag", [*records, *bench_arm(), *pictures]), mapping))
    assert episode.stamps_ns.tolist() == [START_NS + at * MS for at in (0, 100, 200, 500)]  # 300 and 400 have no fresh picture
    assert (episode.observation_age_ns["scene_image"] / MS).tolist() == [0, 100, 50, 0]
    np.testing.assert_array_equal(episode.observations["scene_image"][2], PICTURE[..., ::-1])
    assert episode.meta["steps_dropped"] == 2 and episode.meta["stale"] == {"scene_image": 2}


@pytest.mark.parametrize("said", [False, True])
def test_of_an_episode_that_was_cut_or_begun_anew_success_is_not_known(tmp_path: Path, said: bool) -> None:
    messages = bench_arm(steps=12)
    records = [(at, {"index": index, "phase": "running", "success": said}) for at, index in ((-1, 0), (599, 1))]
    messages += [bags.text("/episode", START_NS + at * MS, json.dumps(record)) for at, record in records]
    bag = write_foreign_bag(tmp_path / "bag", sorted(messages, key=lambda m: m[3]))
    anew, cut = read_with_mapping(bag, MAPPING + "episodes: /episode\n").episodes
    assert (anew.success, anew.meta["phase"]) == (None, "running")
    assert (cut.success, cut.meta["phase"]) == (None, "cut")
