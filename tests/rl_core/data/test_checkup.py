import json
from dataclasses import replace

import numpy as np
import pytest

from rl_core.contract import Channel
from rl_core.data.checkup import check_dataset
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.formats import read_dataset, write_dataset
from rl_core.data.training_data import require_trainable


def finding(report, subject):
    return next(f for f in report.findings if f.subject == subject)


def test_a_clean_dataset_has_no_complaint(make_dataset):
    report = check_dataset(make_dataset((60, 50)))
    assert report.trainable and {f.level for f in report.findings} == {"ok"}
    assert report.figures["steps"] == 110 and report.figures["success_share"] == 0.5
    assert json.loads(report.to_json())["figures"]["episodes"] == 2


def test_true_rate_is_reported_and_kept_when_the_source_is_slower_than_declared(tmp_path, make_episode, contract):
    # declared 30 frames a second, delivered 22 with jitter
    rng = np.random.default_rng(0)
    stamps = np.cumsum(np.concatenate([[0], 1e9 / 22 + rng.normal(scale=4e6, size=300)])).astype(np.int64)
    declared = replace(contract, action=replace(contract.action, period_s=1 / 30))
    dataset = Dataset(contract=declared, episodes=(make_episode(0, 300, stamps_ns=stamps),))
    read = read_dataset(write_dataset(dataset, tmp_path / "slow.hdf5"))
    np.testing.assert_array_equal(read.episodes[0].stamps_ns, stamps)
    report = check_dataset(read)
    assert report.figures["true_hz"] == pytest.approx(22, rel=0.01) and report.figures["declared_hz"] == pytest.approx(30)
    assert report.figures["jitter_s"] == pytest.approx(4e-3, rel=0.2)
    assert finding(report, "rate").level == "error" and not report.trainable
    with pytest.raises(DatasetError, match="recorded at 22"):
        require_trainable(read)


def test_a_camera_that_gives_22_of_30_declared_pictures_and_samples_that_are_too_old_are_named(make_episode, contract):
    # sampled at 30 Hz, newest picture of a source that gives 22 a second; one step waits for it for 0.3 s
    steps = 300
    stamps = np.round(np.arange(steps + 1) * 1e9 / 30).astype(np.int64)
    source = np.round(np.arange(400) * 1e9 / 22).astype(np.int64)
    ages = stamps - source[np.searchsorted(source, stamps, side="right") - 1]
    ages[100] = 300_000_000
    channels = tuple(replace(c, rate_hz=30.0) if c.name == "cube_pos" else c for c in contract.observation)
    at_30 = replace(contract, observation=channels, action=replace(contract.action, period_s=1 / 30))
    episode = make_episode(0, steps, stamps_ns=stamps, observation_age_ns={"cube_pos": ages, "eef_pos": np.zeros_like(ages)})
    report = check_dataset(Dataset(contract=at_30, episodes=(episode,)))
    figures = report.figures["observation_age"]
    assert figures.keys() == {"cube_pos", "eef_pos"}
    assert figures["cube_pos"]["fresh_hz"] == pytest.approx(22, abs=0.3) and figures["eef_pos"]["fresh_hz"] == pytest.approx(30)
    assert figures["cube_pos"]["max_s"] == pytest.approx(0.3) and figures["cube_pos"]["p50_s"] == pytest.approx(1 / 44, abs=3e-3)
    assert figures["cube_pos"]["too_old"] == 1 and figures["eef_pos"]["too_old"] == 0
    line = finding(report, "age")
    assert line.level == "warning" and "eef_pos is" not in line.found
    assert "cube_pos is older than 0.2 s in 1 of 301" in line.found
    assert "cube_pos is declared at 30 Hz and gave 21.9 new samples a second" in line.found
    from_the_future = replace(episode, observation_age_ns={"cube_pos": ages - 400_000_000})
    assert "cube_pos is from the future" in finding(check_dataset(Dataset(contract=at_30, episodes=(from_the_future,))), "age").found


def test_dropped_messages_are_summed_by_topic_over_the_episodes(make_episode, contract):
    def gaps(lost, dropped):
        return {"/camera": {"received": 100, "lost": lost, "dropped": dropped}, "/joint_states": {"received": 200, "lost": 0, "dropped": 0}}

    episodes = (make_episode(0, 50, meta={"gaps": gaps(3, 0)}), make_episode(1, 50, meta={"gaps": gaps(1, 7)}), make_episode(2, 50))
    report = check_dataset(Dataset(contract=contract, episodes=episodes))
    assert report.figures["sequence_gaps"]["/camera"] == {"received": 200, "lost": 4, "dropped": 7}
    assert report.figures["episodes_with_gap_counts"] == 2
    line = finding(report, "gaps")
    assert line.level == "warning" and "/camera 4 lost and 7 dropped of 204" in line.found and "joint_states" not in line.found
    whole = check_dataset(Dataset(contract=contract, episodes=(make_episode(0, 50, meta={"gaps": gaps(0, 0)}),)))
    assert finding(whole, "gaps").level == "ok" and "no message missing on 2 topics" in finding(whole, "gaps").found
    for nonsense in ("many", {"/camera": 3}, {"/camera": {"received": "x"}}, None):
        report = check_dataset(Dataset(contract=contract, episodes=(make_episode(0, 50, meta={"gaps": nonsense}),)))
        assert finding(report, "gaps").level == "warning" and report.figures["unreadable_gap_counts"] == 1


def test_grippers_beyond_their_stroke_and_angles_in_degrees_are_named(make_episode, contract):
    episode = make_episode(0, 50)
    percent = {**episode.observations, "gripper_pos": np.full((51, 1), 55, np.float32), "joint_pos": episode.observations["joint_pos"] + 45}
    report = check_dataset(Dataset(contract=contract, episodes=(replace(episode, observations=percent),)))
    outside = report.figures["outside_range"]
    assert outside["gripper_pos.gripper"] == {"rows": 51, "valid": [pytest.approx(-0.008), pytest.approx(0.088)]}
    assert outside["joint_pos.panda_joint1"]["rows"] == 51 and len(outside) == 8
    assert finding(report, "ranges").level == "warning" and "degrees" in finding(report, "ranges").advice


def pictured(make_episode, contract, change, **camera):
    channel = Channel(name="front", kind="image", shape=(20, 30, 3), encoding="rgb8", row_order="bottom_up", **camera)
    episode = make_episode(0, 60)
    pictures = np.random.default_rng(0).integers(0, 256, (61, 20, 30, 3), dtype=np.uint8)
    observations = {**episode.observations, "front": pictures}
    change(observations)
    dataset = Dataset(
        contract=replace(contract, observation=(*contract.observation, channel)), episodes=(replace(episode, observations=observations),)
    )
    report = check_dataset(dataset)
    return finding(report, "pictures"), report.figures["pictures"]["front"]


def test_cameras_without_fault_say_what_is_declared(make_episode, contract):
    line, figures = pictured(make_episode, contract, lambda observations: None)
    assert line.level == "ok" and "front 30 x 20 rgb8 bottom_up" in line.found and "which way up" in line.advice
    assert figures["frames"] == 61 and figures["black"] == figures["one_colour"] == figures["repeated_while_moving"] == 0


def test_black_and_empty_pictures_are_counted(make_episode, contract):
    def cover(observations):
        observations["front"][3:8] = np.random.default_rng(1).integers(0, 9, (5, 20, 30, 3))  # a covered lens has some noise
        observations["front"][10] = (0, 0, 255)
        observations["front"][11] = (0, 0, 255)
        observations["front"][11, 19, 29] = 7  # one pixel is enough to be no empty picture

    line, figures = pictured(make_episode, contract, cover)
    assert figures["black"] == 5 and figures["one_colour"] == 1
    assert line.level == "warning" and "of 61 pictures 5 are black, 1 of one other colour" in line.found


def test_a_frozen_camera_is_told_from_an_arm_that_stands_still(make_episode, contract):
    def freeze(observations):
        observations["front"][20:46] = observations["front"][20]

    line, figures = pictured(make_episode, contract, freeze)
    assert figures["repeated_while_moving"] == pytest.approx(25 / 60) and figures["longest_freeze_s"] == pytest.approx(25 * 0.05)
    assert line.level == "warning" and "41.7% of the moving steps repeat the picture before, for up to 1.25 s" in line.found

    def stand_still(observations):
        freeze(observations)
        for name in ("joint_pos", "eef_pos", "gripper_pos"):
            observations[name] = observations[name].copy()
            observations[name][20:46] = observations[name][20]

    line, figures = pictured(make_episode, contract, stand_still)
    assert line.level == "ok" and figures["repeated_while_moving"] == 0

    def every_second(observations):
        observations["front"][1::2] = observations["front"][:-1:2]

    line, figures = pictured(make_episode, contract, every_second, rate_hz=10.0)  # as declared, the loop runs at 20 Hz
    assert line.level == "ok" and figures["repeated_while_moving"] == 0.5
    assert pictured(make_episode, contract, every_second, rate_hz=20.0)[0].level == "warning"


def test_stamps_that_repeat_or_go_back_are_counted(make_episode, contract):
    stamps = make_episode(0, 50).stamps_ns.copy()
    stamps[10] = stamps[9]
    stamps[20] = stamps[18]
    report = check_dataset(Dataset(contract=contract, episodes=(make_episode(0, 50, stamps_ns=stamps),)))
    assert report.figures["stamps_repeated"] == 1 and report.figures["stamps_backwards"] == 1
    assert finding(report, "stamps").level == "error"


def test_actions_outside_the_range_are_counted_and_named_and_never_clipped(make_episode, contract):
    episode = make_episode(0, 200)
    actions = episode.actions.copy()
    actions[:10, 4] = 7.5  # 5 % of the steps
    actions[5:8, 6] = -1.2
    dataset = Dataset(contract=contract, episodes=(replace(episode, actions=actions),))
    report = check_dataset(dataset)
    assert report.figures["actions_outside"] == {"ry": 10, "gripper": 3} and report.figures["steps_with_action_outside"] == 10
    line = finding(report, "actions")
    assert line.level == "warning" and "5.0%" in line.found and "ry 10 times (up to 7.5)" in line.found
    np.testing.assert_array_equal(dataset.episodes[0].actions, actions)


def test_angles_that_wrap_are_named_with_what_to_declare(make_episode, contract):
    roll = np.where(np.arange(61) % 2, 3.14, -3.14)
    angles = np.stack([roll, np.linspace(0, 1, 61)], axis=1).astype(np.float32)
    for wraps, advice in (((), "wraps"), (("roll",), "circular")):
        channel = Channel(name="rpy", names=("roll", "pitch"), unit="rad", wraps=wraps)
        episode = make_episode(0, 60)
        episode = replace(episode, observations={**episode.observations, "rpy": angles})
        report = check_dataset(Dataset(contract=replace(contract, observation=(*contract.observation, channel)), episodes=(episode,)))
        assert report.figures["angle_jumps"] == {"rpy.roll": 60}
        assert finding(report, "angles").level == "warning" and advice in finding(report, "angles").advice
        assert report.figures["angle_jumps_undeclared"] == ([] if wraps else ["rpy.roll"])


def test_pauses_in_demonstrations_are_reported(make_episode, contract):
    episode = make_episode(0, 100)
    observations = {name: values.copy() for name, values in episode.observations.items()}
    for values in observations.values():
        values[:41] = values[40]
    report = check_dataset(Dataset(contract=contract, episodes=(replace(episode, observations=observations),)))
    assert report.figures["idle_share"] == pytest.approx(0.4) and report.figures["idle_at_start"] == [40]
    assert finding(report, "idle").level == "warning"


def test_constant_dimensions_nan_and_endings_are_named(make_episode, contract):
    episode = make_episode(0, 80)
    actions = episode.actions.copy()
    actions[:, 6] = 0.04
    observations = {name: values.copy() for name, values in episode.observations.items()}
    observations["cube_pos"][3:5, 1] = np.nan
    spoiled = replace(episode, actions=actions, observations=observations, truncated=False)
    report = check_dataset(Dataset(contract=contract, episodes=(spoiled,)))
    assert report.figures["constant"] == ["action.gripper"] and "action.gripper" in finding(report, "constant").found
    assert report.figures["not_finite"] == {"cube_pos.y": 2} and finding(report, "finite").level == "error"
    assert report.figures["no_ending"] == 1 and finding(report, "endings").level == "warning"


def test_time_limits_recorded_as_terminals_are_suspected(make_episode, contract):
    episodes = tuple(make_episode(seed, 50, terminal=True, truncated=False) for seed in range(3))
    line = finding(check_dataset(Dataset(contract=contract, episodes=episodes)), "endings")
    assert line.level == "warning" and "time limit" in line.advice


def test_time_limits_recorded_as_terminals_among_real_ones_are_suspected(make_episode, contract):
    real = [make_episode(seed, 20 + seed, terminal=True, truncated=False, success=True) for seed in range(6)]
    limits = [make_episode(10 + seed, 50, terminal=True, truncated=False, success=None) for seed in range(2)]
    report = check_dataset(Dataset(contract=contract, episodes=(*real, *limits)))
    assert report.figures["unsuccessful_terminals_at_longest"] == 2 and "at exactly 50 steps" in finding(report, "endings").advice
    told = [replace(episode, terminal=False, truncated=True) for episode in limits]
    assert finding(check_dataset(Dataset(contract=contract, episodes=(*real, *told))), "endings").level == "ok"


def test_an_episode_without_a_channel_of_the_contract_is_named(make_episode, contract):
    episode = make_episode(0, 20)
    observations = {name: values for name, values in episode.observations.items() if name != "cube_pos"}
    observations["eef_pos"] = observations["eef_pos"][:, :2]
    dataset = Dataset(contract=contract, episodes=(episode, replace(episode, uuid="other", observations=observations)))
    report = check_dataset(dataset)
    assert not report.trainable and report.figures["channels_missing"] == {"cube_pos": 1}
    assert report.figures["channels_misshapen"] == {"eef_pos": 1}


def test_figures_are_json_whatever_the_numbers(make_episode, contract):
    episode = make_episode(0, 20)
    actions = episode.actions.copy()
    actions[3, 2], actions[4, 2], actions[:, 5] = np.inf, np.nan, np.nan
    report = check_dataset(Dataset(contract=contract, episodes=(replace(episode, actions=actions),)))
    json.loads(report.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert "action.rz" not in report.figures["dimensions"] and report.figures["not_finite"] == {"action.z": 2, "action.rz": 20}


def test_copies_and_empty_datasets_are_reported(make_episode, contract):
    twice = Dataset(contract=contract, episodes=(make_episode(0, 50), make_episode(0, 50)))
    assert check_dataset(twice).figures["repeated_uuids"] == ["lift-0-00000"]
    assert not check_dataset(Dataset(contract=contract, episodes=())).trainable


def test_episodes_that_were_cut_are_counted(make_episode, contract):
    whole = make_episode(1, 20, terminal=False, truncated=True, success=True)
    cut = make_episode(2, 20, terminal=False, truncated=True, success=None)
    dataset = Dataset(contract=contract, episodes=(whole, replace(cut, meta={"phase": "cut"})))
    report = check_dataset(dataset)
    assert report.figures["cut"] == 1 and "1 cut: under way when their recording ended" in finding(report, "endings").found
    assert finding(report, "endings").level == "warning"
    assert check_dataset(Dataset(contract=contract, episodes=(whole, cut))).figures["cut"] == 0
