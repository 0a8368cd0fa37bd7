"""Datasets at another rate."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rl_core.contract import Action, Channel, Gripper, RobotContract
from rl_core.data.checkup import check_dataset
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.resampling import resample
from rl_core.data.training_data import require_trainable

MS = 1_000_000
PICTURES = np.arange(5, dtype=np.uint8)[:, None, None, None] * np.ones((1, 2, 2, 1), np.uint8)


def contract_of(meaning: str, *, period_s: float = 0.1) -> RobotContract:
    return RobotContract(
        robot="arm",
        observation=(
            Channel(name="joint_pos", names=("a", "turn"), unit="rad", wraps=("turn",)),
            Channel(name="eef_quat", kind="quaternion", frame="base"),
            Channel(name="front", kind="image", shape=(2, 2, 1), encoding="mono8", row_order="top_down"),
            Channel(name="count", names=("n",), dtype="int64"),
        ),
        action=Action(
            names=("a", "turn", "gripper"), meaning=meaning, space="joint", scale=(0.1, 0.1, 1.0), units=("rad", "rad", "m"),
            period_s=period_s, gripper=Gripper(name="gripper", open=0.08, closed=0.0),
        ),
    )  # fmt: skip


def recorded(meaning: str = "delta", **changes: object) -> Dataset:
    """4 steps of 100 ms; a turns by 0.1 rad a step, the hand by 0.2 rad about z, `turn` crosses pi."""
    turn = np.array([3.0, 3.1, -3.083185, -2.983185, -2.883185])
    fields = {
        "observations": {
            "joint_pos": np.float32(np.stack([0.1 * np.arange(5), turn], axis=1)),
            "eef_quat": np.float32(Rotation.from_rotvec(np.outer(np.arange(5), [0, 0, 0.2])).as_quat() * [[-1], [-1], [1], [1], [1]]),
            "front": PICTURES,
            "count": np.arange(5)[:, None],
        },
        "actions": np.float32([[0.2, 0.0, -1], [0.4, 0.0, -1], [0.6, 0.0, 1], [0.8, 0.0, 1]]),
        "action_applied": np.float32([[0.1, 0.0, -1], [0.2, 0.0, -1], [0.3, 0.0, 1], [0.4, 0.0, 1]]),
        "rewards": np.float32([1, 2, 4, 8]),
        "terminal": True,
        "truncated": False,
        "stamps_ns": 7 + 100 * MS * np.arange(5),
        "observation_age_ns": {"front": np.array([1, 2, 3, 4, 5]), "joint_pos": np.zeros(5, np.int64)},
        "uuid": "one",
    }
    return Dataset(contract=contract_of(meaning), episodes=(Episode(**{**fields, **changes}),), source="/x/slow.hdf5")  # type: ignore[arg-type]


def only(dataset: Dataset) -> Episode:
    (episode,) = dataset.episodes
    return episode


def test_twice_the_rate_interpolates_turns_evenly_and_repeats_the_nearest_picture() -> None:
    made = resample(recorded(), 20.0)
    episode = only(made.dataset)
    assert made.dataset.contract.action.period_s == 0.05 and len(episode) == 8 and made.in_gaps == 0
    np.testing.assert_array_equal(episode.stamps_ns, 7 + 50 * MS * np.arange(9))
    np.testing.assert_allclose(episode.observations["joint_pos"][:, 0], 0.05 * np.arange(9), atol=1e-6)
    assert episode.observations["joint_pos"].dtype == np.float32
    np.testing.assert_allclose(episode.observations["joint_pos"][2:5, 1], [3.1, -3.133185, -3.083185], atol=1e-5)  # the short way round
    turned = Rotation.from_quat(episode.observations["eef_quat"])
    np.testing.assert_allclose(turned.as_rotvec()[:, 2], 0.1 * np.arange(9), atol=1e-6)
    assert (episode.observations["eef_quat"][::2] * recorded().episodes[0].observations["eef_quat"]).sum(axis=1).min() > 0.99
    assert episode.observations["front"][:, 0, 0, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4]  # of two equally near the earlier
    assert (episode.observation_age_ns["front"] - [1, 1, 2, 2, 3, 3, 4, 4, 5]).tolist() == [0, 50 * MS] * 4 + [0]
    np.testing.assert_allclose(episode.rewards, [0, 1, 0, 2, 0, 4, 0, 8])
    assert episode.terminal and not episode.truncated and episode.uuid == "one"


@pytest.mark.parametrize(
    ("meaning", "moved"),
    [("delta", [[0.6, 1.4], [0.3, 0.7]]), ("velocity", [[0.3, 0.7], [0.15, 0.35]]), ("absolute", [[0.2, 0.6], [0.1, 0.3]])],
)
def test_half_the_rate_sums_deltas_averages_velocities_and_takes_absolute_actions_in_force(meaning: str, moved: list[list[float]]) -> None:
    made = resample(recorded(meaning), 5.0 * 2, "hold")
    np.testing.assert_array_equal(only(made.dataset).actions, recorded(meaning).episodes[0].actions)  # the rate it has
    slow = dataclasses.replace(recorded(meaning), contract=contract_of(meaning, period_s=0.05))
    slow = dataclasses.replace(slow, episodes=(dataclasses.replace(only(slow), stamps_ns=50 * MS * np.arange(5)),))
    episode = only(resample(slow, 10.0, "hold").dataset)
    np.testing.assert_allclose(episode.actions[:, 0], moved[0], atol=1e-6)
    assert episode.action_applied is not None
    np.testing.assert_allclose(episode.action_applied[:, 0], moved[1], atol=1e-6)
    assert episode.actions[:, 2].tolist() == [-1, 1]  # the gripper is absolute in each
    assert episode.rewards.tolist() == [3, 12]
    assert episode.observations["joint_pos"][:, 0].tolist() == pytest.approx([0, 0.2, 0.4]) and episode.observations["count"].tolist() == [
        [0],
        [2],
        [4],
    ]


def test_a_rate_that_does_not_divide_keeps_every_delta_reward_and_the_last_observation() -> None:
    dataset = recorded()
    for rate in (11.0, 13.7, 30.0, 100.0):
        made = resample(dataset, rate)
        episode = only(made.dataset)
        np.testing.assert_allclose(episode.actions[:, 0].sum(), 2.0, atol=1e-5)
        assert episode.rewards.sum() == 15
        assert abs(int(episode.stamps_ns[-1] - dataset.episodes[0].stamps_ns[-1])) <= 0.5e9 / rate + 1
        for name, values in episode.observations.items():
            np.testing.assert_allclose(values[-1], dataset.episodes[0].observations[name][-1], atol=1e-6)
        np.testing.assert_allclose(np.diff(episode.stamps_ns), 1e9 / rate, atol=1)


def test_gaps_and_actions_outside_are_counted_and_noted() -> None:
    stamps = 7 + 100 * MS * np.array([0, 1, 2, 8, 9])
    made = resample(recorded(stamps_ns=stamps), 10.0)
    assert made.in_gaps == 6 and made.actions_outside == 0
    entry = only(made.dataset).meta["history"][-1]
    assert (entry["operation"], entry["arguments"]) == ("resample", {"rate_hz": 10.0, "numbers": "linear"})
    assert (entry["source"], entry["steps_before"], entry["steps_in_gaps"]) == ("slow.hdf5", 4, 6)
    fast = recorded(stamps_ns=25 * MS * np.arange(5))
    assert resample(fast, 10.0).actions_outside == 1


def test_timestamps_of_a_slow_loop_are_refused_with_the_way_out_and_trained_on_after_resampling(
    make_dataset: Callable[..., Dataset],
) -> None:
    """Pain 8: "30 fps" from a source that delivers 22 with jitter."""
    rng = np.random.default_rng(0)
    dataset = make_dataset((60, 80))
    dataset = dataclasses.replace(
        dataset,
        contract=dataclasses.replace(dataset.contract, action=dataclasses.replace(dataset.contract.action, period_s=1 / 30)),
        episodes=tuple(
            dataclasses.replace(e, stamps_ns=np.cumsum(rng.normal(1e9 / 22, 4e6, len(e) + 1)).astype(np.int64)) for e in dataset.episodes
        ),
    )
    with pytest.raises(DatasetError, match="recorded at 2.* Hz, but its contract says 30 Hz"):
        require_trainable(dataset)
    rate = next(finding for finding in check_dataset(dataset).findings if finding.subject == "rate")
    assert rate.level == "error" and "armstack resample IN OUT --rate-hz 30" in rate.advice
    made = resample(dataset, 30.0).dataset
    require_trainable(made)
    for before, after in zip(dataset.episodes, made.episodes, strict=True):
        seconds = (int(before.stamps_ns[-1]) - int(before.stamps_ns[0])) * 1e-9
        assert len(after) == pytest.approx(30 * seconds, abs=1) and after.uuid == before.uuid
        assert after.rewards.sum() == pytest.approx(before.rewards.sum(), rel=1e-5)


@pytest.mark.parametrize(
    ("changes", "rate", "words"),
    [
        ({}, 5.0, "rate 5 Hz, valid: 10..500"),
        ({}, 0.0, "rate 0 Hz, valid"),
        ({"stamps_ns": np.array([0, 1, 1, 2, 3])}, 20.0, "/x/slow.hdf5: episode one: stamps repeat or go back"),
        (
            {"observations": {**recorded().episodes[0].observations, "eef_quat": np.zeros((5, 4), np.float32)}},
            20.0,
            "eef_quat at observation 0",
        ),
    ],
)
def test_what_cannot_be_resampled_is_named(changes: dict[str, object], rate: float, words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        resample(recorded(**changes), rate)
