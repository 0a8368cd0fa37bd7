import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.replay import ReplayBuffer
from rl_core.data.samplers import UniformSampler

COLUMNS = {"observation": 3, "action": 1, "reward": 1, "terminal": 1, "next_observation": 3}


def rows(first: int, count: int) -> dict[str, np.ndarray]:
    """Transitions whose every number is the row's own."""
    k = np.arange(first, first + count, dtype=np.float32)
    return {name: np.tile(k[:, None], (1, width)) for name, width in COLUMNS.items()}


def test_ring_overwrites_the_oldest_and_add_equals_extend():
    one, many = ReplayBuffer(5, COLUMNS), ReplayBuffer(5, COLUMNS)
    for k in range(8):
        one.add(**{name: values[0] for name, values in rows(k, 1).items()})
    many.extend(rows(0, 3))
    many.extend(rows(3, 5))
    np.testing.assert_array_equal(one.rows, many.rows)
    assert len(one) == 5 and one.added == 8
    assert sorted(one.gather(np.arange(5))["reward"].tolist()) == [3, 4, 5, 6, 7]
    many.extend(rows(8, 13))  # more at once than fit
    assert sorted(many.gather(np.arange(5))["reward"].tolist()) == [16, 17, 18, 19, 20] and many.added == 21
    np.testing.assert_array_equal(many.rows[21 % 5][0], 16)


def test_batches_are_flat_float32_and_never_alias_the_buffer():
    replay = ReplayBuffer(5, {**COLUMNS, "goal": 2})
    replay.extend({**rows(0, 4), "goal": np.ones((4, 2))})
    batch = replay.gather(np.array([0, 1, 2]))
    assert batch.batch_size == torch.Size([3])
    assert {name: tuple(value.shape) for name, value in batch.items()} == {
        "observation": (3, 3), "action": (3, 1), "reward": (3,), "terminal": (3,), "next_observation": (3, 3), "goal": (3, 2),
    }  # fmt: skip
    assert all(value.dtype == torch.float32 for value in batch.values())
    batch["observation"].zero_()
    assert replay.gather(np.array([2]))["observation"].tolist() == [[2.0, 2.0, 2.0]]


def test_wrong_columns_are_named():
    replay = ReplayBuffer(5, COLUMNS)
    with pytest.raises(DatasetError, match="reward"):
        replay.add(observation=[0, 0, 0], action=[0], terminal=0, next_observation=[0, 0, 0])
    with pytest.raises(DatasetError, match="'observation'.*valid: \\(1, 3\\)"):
        replay.add(**{**{name: values[0] for name, values in rows(0, 1).items()}, "observation": [1.0, 2.0]})
    with pytest.raises(DatasetError, match="empty"):
        UniformSampler(replay, batch_size=2, seed=0).next_batch()


def test_time_limit_is_not_terminal_and_next_observation_never_crosses_an_episode(make_dataset):
    dataset = make_dataset((6, 3, 9))
    replay = ReplayBuffer.from_dataset(dataset, dataset.contract)
    batch = replay.gather(np.arange(18))
    start = 0
    for episode in dataset.episodes:
        flat = episode.flat_observation(dataset.contract)
        end = start + len(episode)
        np.testing.assert_array_equal(batch["observation"][start:end], flat[:-1])
        np.testing.assert_array_equal(batch["next_observation"][start:end], flat[1:])
        assert batch["terminal"][start : end - 1].sum() == 0
        assert batch["terminal"][end - 1] == float(episode.terminal)
        start = end
    assert not dataset.episodes[1].terminal and dataset.episodes[1].truncated


def test_applied_action_is_trained_on_where_it_differs_by_more_than_one_percent(make_episode, contract, caplog):
    episode = make_episode(0, 5)
    applied = episode.actions.copy()
    applied[1, 2] += 0.019  # below 1 % of the range -1..1
    applied[3, 4] += 0.021
    dataset = Dataset(contract=contract, episodes=(replace(episode, action_applied=applied),))
    actions = ReplayBuffer.from_dataset(dataset, contract).gather(np.arange(5))["action"].numpy()
    np.testing.assert_array_equal(actions[[0, 1, 2, 4]], episode.actions[[0, 1, 2, 4]])
    np.testing.assert_array_equal(actions[3], applied[3])
    assert "1 of 5 steps" in caplog.text


def test_concurrent_add_and_sample_give_no_torn_rows():
    replay = ReplayBuffer(500, COLUMNS)
    replay.extend(rows(0, 500))
    sampler = UniformSampler(replay, batch_size=256, seed=0)
    done = threading.Event()
    written = [0, 0, 0]

    def write(writer: int) -> None:
        while not done.is_set():
            replay.extend(rows(1000 * writer, 7))
            written[writer] += 7

    writers = [threading.Thread(target=write, args=(k,)) for k in range(3)]
    for thread in writers:
        thread.start()
    torn = 0
    end = time.monotonic() + 3
    while time.monotonic() < end:
        batch = sampler.next_batch()
        torn += int((batch["observation"] != batch["reward"][:, None]).any(dim=1).sum())
        torn += int((batch["next_observation"] != batch["reward"][:, None]).any(dim=1).sum())
    done.set()
    for thread in writers:
        thread.join()
    assert torn == 0
    assert min(written) > 0 and replay.added == 500 + sum(written)


def test_saved_replay_loads_to_the_bit_and_shards_are_only_appended(tmp_path):
    replay = ReplayBuffer(10, COLUMNS)
    for first, count in ((0, 4), (4, 5), (9, 14)):
        before = {file: file.read_bytes() for file in tmp_path.glob("rows-*")}
        replay.extend(rows(first, count))
        replay.save(tmp_path)
        loaded = ReplayBuffer.load(tmp_path)
        np.testing.assert_array_equal(loaded.rows, replay.rows)
        assert loaded.state_dict() == replay.state_dict() and loaded.columns.widths == replay.columns.widths
        assert all(file.read_bytes() == data for file, data in before.items())
    loaded.extend(rows(23, 3))
    replay.extend(rows(23, 3))
    np.testing.assert_array_equal(loaded.rows, replay.rows)


def test_replay_goes_back_to_the_checkpoint_not_to_the_last_save(tmp_path):
    replay = ReplayBuffer(10, COLUMNS)
    replay.extend(rows(0, 7))
    replay.save(tmp_path)
    checkpoint, at_checkpoint = replay.state_dict(), replay.rows.copy()
    replay.extend(rows(7, 6))
    replay.save(tmp_path)
    resumed = ReplayBuffer.load(tmp_path, added=checkpoint["added"])
    np.testing.assert_array_equal(resumed.rows, at_checkpoint)
    resumed.extend(rows(100, 2))
    resumed.save(tmp_path)
    again = ReplayBuffer.load(tmp_path)
    np.testing.assert_array_equal(again.rows, resumed.rows)
    assert again.added == 9
    with pytest.raises(DatasetError, match="valid: 0..9"):
        ReplayBuffer.load(tmp_path, added=10)


def test_damaged_shard_is_named_and_never_unpickled(tmp_path):
    replay = ReplayBuffer(10, COLUMNS)
    replay.extend(rows(0, 7))
    replay.save(tmp_path)
    shard = next(tmp_path.glob("rows-*"))
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatasetError, match=shard.name):
        ReplayBuffer.load(tmp_path)
    with shard.open("wb") as file:
        np.savez(file, rows=np.array([{"any": "object"}], dtype=object))
    with pytest.raises(DatasetError, match=shard.name):
        ReplayBuffer.load(tmp_path)
    (tmp_path / "replay.json").write_text("{")
    with pytest.raises(DatasetError, match="replay.json"):
        ReplayBuffer.load(tmp_path)
