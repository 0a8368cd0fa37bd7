from dataclasses import replace

import h5py
import numpy as np
import pytest

from rl_core.contract import Channel
from rl_core.data.episode import DatasetError
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats import read_dataset, write_dataset
from rl_core.data.replay import ReplayBuffer


def d4rl_file(path, *, timeouts=True, following=False, skip=()):
    """Three episodes of 4 (terminal), 3 (time limit) and 5 steps (end of file); observation k is [k, k], resets jump by 100."""
    lengths, observations, after = (4, 3, 5), [], []
    for e, steps in enumerate(lengths):
        values = 100 * e + np.arange(steps + 1)
        observations.append(values[:-1])
        after.append(values[1:])
    flat, last = np.concatenate(observations), np.cumsum(lengths) - 1
    terminals, limits = np.zeros(12, bool), np.zeros(12, bool)
    terminals[last[0]], limits[last[1]] = True, True
    fields = {
        "observations": np.stack([flat, flat], 1).astype(np.float32),
        "actions": np.arange(24).reshape(12, 2).astype(np.float32) / 24,
        "rewards": np.arange(12, dtype=np.float32),
        "terminals": terminals,
    }
    if timeouts:
        fields["timeouts"] = limits
    if following:
        after = np.concatenate(after)
        fields["next_observations"] = np.stack([after, after], 1).astype(np.float32)
    with h5py.File(path, "w") as file:
        for name, values in fields.items():
            if name not in skip:
                file[name] = values
        file["infos/qpos"] = np.zeros((12, 3))
    return path


def test_timeouts_truncate_and_terminals_end(tmp_path):
    dataset = read_dataset(d4rl_file(tmp_path / "hopper.hdf5", following=True))
    assert [(len(e), e.terminal, e.truncated) for e in dataset.episodes] == [(4, True, False), (3, False, True), (5, False, True)]
    assert [e.observations["observation"][-1, 0] for e in dataset.episodes] == [4, 103, 205]
    batch = ReplayBuffer.from_dataset(dataset, dataset.contract).gather(np.arange(12))
    assert batch["terminal"].tolist() == [0, 0, 0, 1] + [0] * 8
    assert (batch["next_observation"] - batch["observation"] == 1).all()


def test_without_next_observations_no_transition_crosses_a_reset(tmp_path):
    dataset = read_dataset(d4rl_file(tmp_path / "hopper.hdf5"))
    # what followed a time limit isn't in the file: that step is dropped; behind a terminal nothing is needed
    assert [(len(e), e.terminal) for e in dataset.episodes] == [(4, True), (2, False), (4, False)]
    batch = ReplayBuffer.from_dataset(dataset, dataset.contract).gather(np.arange(10))
    step = (batch["next_observation"] - batch["observation"])[:, 0]
    assert step.tolist() == [1, 1, 1, 0, 1, 1, 1, 1, 1, 1] and batch["terminal"][3] == 1


def test_missing_timeouts_are_found_where_observations_jump(tmp_path, caplog):
    dataset = read_dataset(d4rl_file(tmp_path / "hopper.hdf5", timeouts=False, following=True))
    assert [(len(e), e.terminal) for e in dataset.episodes] == [(4, True), (3, False), (5, False)]
    assert "no timeouts" in caplog.text and "next_observations" in caplog.text


def test_missing_timeouts_that_cannot_be_found_are_said(tmp_path, caplog):
    dataset = read_dataset(d4rl_file(tmp_path / "hopper.hdf5", timeouts=False))
    assert [(len(e), e.terminal) for e in dataset.episodes] == [(4, True), (7, False)]
    assert "resets elsewhere can't be seen" in caplog.text


def test_channels_stamps_and_endings_come_back_from_our_own_file(tmp_path, make_dataset):
    dataset = make_dataset((6, 3, 9))
    read = read_dataset(write_dataset(dataset, tmp_path / "export.hdf5", format="d4rl"))
    assert read.contract == dataset.contract
    for one, other in zip(dataset.episodes, read.episodes, strict=True):
        assert (one.terminal, one.truncated) == (other.terminal, other.truncated)
        np.testing.assert_array_equal(one.actions, other.actions)
        np.testing.assert_array_equal(one.rewards, other.rewards)
        np.testing.assert_array_equal(one.stamps_ns, other.stamps_ns)
        for name in one.observations:
            np.testing.assert_array_equal(one.observations[name], other.observations[name])


def test_our_file_is_d4rls_to_others_and_holds_the_rest_beside_it(tmp_path, make_dataset):
    dataset = make_dataset((6, 3, 9))
    path = write_dataset(dataset, tmp_path / "export.hdf5", format="d4rl")
    with h5py.File(path) as file:
        assert {name: (node.shape, node.dtype) for name, node in file.items() if name != "infos"} == {
            "observations": ((18, 21), np.float32), "next_observations": ((18, 21), np.float32), "actions": ((18, 7), np.float32),
            "rewards": ((18,), np.float32), "terminals": ((18,), bool), "timeouts": ((18,), bool),
        }  # fmt: skip
        assert np.flatnonzero(file["terminals"]).tolist() == [5, 17] and np.flatnonzero(file["timeouts"]).tolist() == [8]
    assert fingerprint(read_dataset(path)) == fingerprint(dataset)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("infos/episodes", None, "infos/episodes is missing"),
        ("infos/episodes", np.array(['{"steps": 6}', '{"steps": 3}'], np.bytes_), r"infos/episodes has \[6, 3\] steps; valid: .*18 in all"),
        ("infos/episodes", np.array(["[]"], np.bytes_), "damaged"),
        ("infos/next_stamps_ns", np.zeros(17, np.int64), "stamps_ns has 9 rows, valid: 10"),
        ("next_observations", None, "next_observations"),
    ],
)
def test_damaged_facts_are_dataset_errors(tmp_path, make_dataset, name, values, words):
    path = write_dataset(make_dataset((6, 3, 9)), tmp_path / "export.hdf5", format="d4rl")
    with h5py.File(path, "r+") as file:
        del file[name]
        if values is not None:
            file[name] = values
    with pytest.raises(DatasetError, match=words):
        read_dataset(path)


def test_pictures_alone_have_no_place(tmp_path, make_dataset):
    dataset = make_dataset((2,))
    camera = Channel(name="wrist", kind="image", shape=(4, 4, 3), encoding="rgb8", row_order="top_down")
    episode = replace(dataset.episodes[0], observations={"wrist": np.zeros((3, 4, 4, 3), np.uint8)})
    with pytest.raises(DatasetError, match=r"no channel but the images \['wrist'\]"):
        write_dataset(
            replace(dataset, contract=replace(dataset.contract, observation=(camera,)), episodes=(episode,)), tmp_path / "x", "d4rl"
        )


def test_damaged_files_are_dataset_errors(tmp_path):
    path = d4rl_file(tmp_path / "hopper.hdf5", skip=("rewards",))
    with pytest.raises(DatasetError, match="/rewards is missing; found"):
        read_dataset(path)
    path = d4rl_file(tmp_path / "hopper.hdf5")
    with h5py.File(path, "r+") as file:
        del file["terminals"]
        file["terminals"] = np.zeros(11, bool)
    with pytest.raises(DatasetError, match="/terminals has 11 rows, valid: 12"):
        read_dataset(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatasetError, match="hopper.hdf5"):
        read_dataset(path)
