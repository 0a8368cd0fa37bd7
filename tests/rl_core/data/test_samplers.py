import json

import numpy as np
import pytest
import torch

from rl_core.data.episode import DatasetError
from rl_core.data.episode_replay import EpisodeReplay
from rl_core.data.replay import ReplayBuffer
from rl_core.data.samplers import EpochSampler, HindsightSampler, RolloutSampler, UniformSampler, WeightedMixture, WindowSampler
from rl_core.data.samplers.windows import gather_windows
from rl_core.data.weights import read_weights, transition_weights


def numbered(count: int) -> ReplayBuffer:
    replay = ReplayBuffer(count, {"observation": 2, "reward": 1})
    replay.extend({"observation": np.arange(2 * count).reshape(count, 2), "reward": np.arange(count)})
    return replay


def episodes(*lengths: int, capacity: int = 1000) -> EpisodeReplay:
    """Episode e's observation t is [100 e + t, e], its action t is t, its reward t is 10 e + t; even ones are terminal."""
    replay = EpisodeReplay(capacity, {"observation": 2, "action": 1, "reward": 1})
    for e, steps in enumerate(lengths):
        time = np.arange(steps + 1)
        observation = np.stack([100 * e + time, np.full_like(time, e)], 1)
        values = {"observation": observation, "action": time[:-1, None], "reward": 10 * e + time[:-1]}
        replay.add_episode(values, terminal=e % 2 == 0)
    return replay


def hindsight(replay: EpisodeReplay, **changes) -> HindsightSampler:
    def with_goal(observation, goal):
        return np.concatenate([observation[:, :1], goal], axis=1)

    options = {
        "achieved": lambda observation: observation[:, :1],
        "with_goal": with_goal,
        "reward": lambda reached, goal: (reached == goal).all(axis=1).astype(np.float32) - 1,
        "batch_size": 512,
        "seed": 3,
    }
    return HindsightSampler(replay, **{**options, **changes})


def samplers() -> dict:
    flat, whole = numbered(50), episodes(5, 9, 7)
    return {
        "uniform": lambda seed: UniformSampler(flat, batch_size=8, seed=seed),
        "weighted": lambda seed: UniformSampler(flat, batch_size=8, seed=seed, weights=np.arange(50)),
        "epoch": lambda seed: EpochSampler(flat, batch_size=8, seed=seed),
        "windows": lambda seed: WindowSampler(whole, length=4, batch_size=8, seed=seed, pad_after=2),
        "rollouts": lambda seed: RolloutSampler(whole, batch_size=4, seed=seed),
        "hindsight": lambda seed: hindsight(whole, batch_size=8, seed=seed),
        "mixture": lambda seed: WeightedMixture(
            {
                "a": (UniformSampler(flat, batch_size=8, seed=seed), 1.0),
                "b": (EpochSampler(numbered(20), batch_size=8, seed=seed), 2.0),
            },
            batch_size=8,
            seed=seed,
        ),
    }


@pytest.mark.parametrize("name", sorted(samplers()))
def test_resumed_sampler_goes_on_to_the_bit(name):
    make = samplers()[name]
    one, other = make(7), make(99)
    for _ in range(9):
        one.next_batch()
        other.next_batch()
    other.load_state_dict(json.loads(json.dumps(one.state_dict())))
    for _ in range(12):
        left, right = one.next_batch(), other.next_batch()
        assert set(left.keys()) == set(right.keys())
        assert all(torch.equal(left[key], right[key]) for key in left.keys())
    same, differs = make(7).next_batch(), make(8).next_batch()
    assert torch.equal(same["observation"], make(7).next_batch()["observation"])
    assert same["observation"].shape != differs["observation"].shape or not torch.equal(same["observation"], differs["observation"])


def test_epochs_show_every_transition_once_each_in_another_order():
    sampler = EpochSampler(numbered(50), batch_size=10, seed=0)
    first, second = (torch.cat([sampler.next_batch()["reward"] for _ in range(5)]) for _ in range(2))
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(50))
    assert first.tolist() != second.tolist()
    uneven = EpochSampler(numbered(7), batch_size=3, seed=0)
    seen = torch.cat([uneven.next_batch()["reward"] for _ in range(7)])
    assert [sorted(seen[k : k + 7].tolist()) for k in (0, 7, 14)] == [list(range(7))] * 3


def test_epoch_checkpoint_of_other_data_is_refused():
    state = EpochSampler(numbered(7), batch_size=3, seed=0).state_dict()
    with pytest.raises(DatasetError, match="7 transitions, this dataset has 8"):
        EpochSampler(numbered(8), batch_size=3, seed=0).load_state_dict(state)


def test_uniform_sampler_draws_all_alike_or_by_weight():
    replay = numbered(4)
    counts = torch.bincount(UniformSampler(replay, batch_size=8000, seed=0).next_batch()["reward"].long(), minlength=4)
    assert counts.min() > 1800 and counts.max() < 2200
    weighted = UniformSampler(replay, batch_size=8000, seed=0, weights=[0, 1, 0, 3])
    counts = torch.bincount(weighted.next_batch()["reward"].long(), minlength=4)
    assert counts[0] == counts[2] == 0 and 5700 < counts[3] < 6300
    with pytest.raises(DatasetError, match="valid: 4"):
        UniformSampler(replay, batch_size=1, seed=0, weights=[1, 1])


def test_episode_weights_come_by_uuid_from_weights_json(tmp_path, make_dataset):
    dataset = make_dataset((6, 3, 9))
    file = tmp_path / "weights.json"
    uuids = [episode.uuid for episode in dataset.episodes]
    file.write_text(json.dumps({uuids[2]: 0.0, uuids[0]: 1.0, uuids[1]: 2.0, "elsewhere": 5.0}))
    weights = read_weights(file)
    assert transition_weights(dataset, weights).tolist() == [1.0] * 6 + [2.0] * 3 + [0.0] * 9
    replay = EpisodeReplay.from_dataset(dataset, dataset.contract, weights=weights)
    lengths = RolloutSampler(replay, batch_size=300, seed=0).next_batch()["length"]
    assert (lengths == 9).sum() == 0 and 170 < (lengths == 3).sum() < 230
    with pytest.raises(DatasetError, match=uuids[0]):
        transition_weights(dataset, {uuids[1]: 1.0})
    for text in ("[1]", '{"a": -1}', '{"a": "1"}', '{"a": NaN}', "{"):
        file.write_text(text)
        with pytest.raises(DatasetError, match="weights.json"):
            read_weights(file)


def test_windows_stay_inside_their_episode_and_all_are_equally_likely():
    sampler = WindowSampler(episodes(5, 2, 7), length=3, batch_size=4000, seed=0)
    batch = sampler.next_batch()
    assert batch["observation"].shape == (4000, 3, 2) and batch["action"].shape == (4000, 3, 1) and batch["reward"].shape == (4000, 3)
    episode = batch["observation"][..., 1]
    assert (episode == episode[:, :1]).all() and set(episode.unique().tolist()) == {0.0, 2.0}  # the one of 2 steps is too short
    assert (batch["observation"][:, 1:, 0] - batch["observation"][:, :-1, 0] == 1).all()
    assert (batch["next_observation"][..., 0] - batch["observation"][..., 0] == 1).all()
    assert batch["mask"].min() == 1
    starts, counts = batch["observation"][:, 0, 0].unique(return_counts=True)
    assert starts.tolist() == [0, 1, 2, 200, 201, 202, 203, 204]
    assert counts.min() > 400 and counts.max() < 600
    with pytest.raises(DatasetError, match="longest of 3 episodes has 7"):
        WindowSampler(episodes(5, 2, 7), length=8, batch_size=1, seed=0).next_batch()


def test_a_batch_without_padding_has_the_numbers_of_one_with_padding_and_no_column_shares_another_ones_memory():
    replay = episodes(9, 9, 9, 9, capacity=25)  # the first of the two that are left goes over the end of the ring
    first, steps, _ = replay.spans()
    assert len(first) == 2 and first[0] % 25 + 9 >= 25
    chosen, offsets = np.array([0, 1, 1, 0]), np.array([2, 0, 5, 5])
    whole = gather_windows(replay, first[chosen], steps[chosen], offsets, 4)
    padded = gather_windows(replay, first[[*chosen, 0]], steps[[*chosen, 0]], np.append(offsets, 6), 4)  # the last one has padding
    assert padded["mask"][4].tolist() == [1, 1, 1, 0]
    assert set(whole.keys()) == set(padded.keys())
    for name, tensor in whole.items():
        assert torch.equal(tensor, padded[name][:4]) and tensor.dtype == padded[name].dtype
    following = whole["next_observation"].clone()
    whole["observation"].zero_()
    assert torch.equal(whole["next_observation"], following)


def test_padding_repeats_the_ends_and_is_masked():
    sampler = WindowSampler(episodes(3), length=4, batch_size=300, seed=0, pad_before=1, pad_after=3)
    batch = sampler.next_batch()
    rows = {
        tuple(o): (tuple(n), tuple(m), tuple(t))
        for o, n, m, t in zip(
            batch["observation"][..., 0].tolist(), batch["next_observation"][..., 0].tolist(), batch["mask"].tolist(),
            batch["terminal"].tolist(), strict=True,
        )
    }  # fmt: skip
    assert rows == {
        (0, 0, 1, 2): ((1, 1, 2, 3), (0, 1, 1, 1), (0, 0, 0, 1)),
        (0, 1, 2, 2): ((1, 2, 3, 3), (1, 1, 1, 0), (0, 0, 1, 1)),
        (1, 2, 2, 2): ((2, 3, 3, 3), (1, 1, 0, 0), (0, 1, 1, 1)),
        (2, 2, 2, 2): ((3, 3, 3, 3), (1, 0, 0, 0), (1, 1, 1, 1)),
    }


def test_rollouts_are_whole_and_padded_to_the_longest():
    batch = RolloutSampler(episodes(5, 2), batch_size=64, seed=0).next_batch()
    assert batch["observation"].shape == (64, 5, 2)
    assert set(batch["length"].tolist()) == {2, 5}
    assert (batch["mask"].sum(1) == batch["length"]).all()
    short = batch["length"] == 2
    assert batch["observation"][short][0, :, 0].tolist() == [100, 101, 101, 101, 101]
    assert batch["observation"][~short][0, :, 0].tolist() == [0, 1, 2, 3, 4]


def test_hindsight_goals_are_reached_later_in_the_same_episode():
    batch = hindsight(episodes(5, 9, 7)).next_batch()
    relabelled = batch["relabelled"].bool()
    assert 0.7 < relabelled.float().mean() < 0.9  # k = 4: four in five
    state, goal = batch["observation"][:, 0], batch["observation"][:, 1]
    assert (goal[relabelled] > state[relabelled]).all()
    assert (goal[relabelled] // 100 == state[relabelled] // 100).all()
    last = torch.tensor([5.0, 9.0, 7.0])[(state // 100).long()]
    assert (goal[relabelled] % 100 <= last[relabelled]).all()
    assert (batch["next_observation"][:, 0] - state == 1).all()
    assert (batch["next_observation"][relabelled, 1] == goal[relabelled]).all()
    reached = (batch["next_observation"][:, 0] == goal) & relabelled
    assert reached.any()
    assert (batch["reward"][relabelled] == torch.where(reached, 0.0, -1.0)[relabelled]).all()
    assert (batch["terminal"][relabelled] == 0).all()
    # the others keep what was recorded
    assert (goal[~relabelled] == state[~relabelled] // 100).all()
    assert (batch["reward"][~relabelled] == 10 * (state // 100)[~relabelled] + (state % 100)[~relabelled]).all()


def test_hindsight_ends_where_the_task_ends_at_its_goal():
    sampler = hindsight(episodes(5, 9), relabelled=9, terminal=lambda reached, goal: (reached == goal).all(axis=1))
    batch = sampler.next_batch()
    relabelled = batch["relabelled"].bool()
    assert torch.equal(batch["terminal"][relabelled], (batch["reward"][relabelled] == 0).float())
    assert not hindsight(episodes(5), relabelled=0).next_batch()["relabelled"].any()


def test_whole_episodes_are_overwritten_and_saved(tmp_path):
    replay = episodes(5, 9, 7, 4, capacity=20)
    assert len(replay) == 2  # 8 + 5 rows; the one of 10 rows has lost its first
    batch = RolloutSampler(replay, batch_size=64, seed=0).next_batch()
    assert set(batch["observation"][:, 0, 0].tolist()) == {200.0, 300.0}
    replay.save(tmp_path)
    loaded = EpisodeReplay.load(tmp_path, added=replay.state_dict()["added"])
    assert len(loaded) == 2 and loaded.columns == replay.columns
    again = RolloutSampler(loaded, batch_size=64, seed=0).next_batch()
    assert all(torch.equal(batch[key], again[key]) for key in batch.keys())
    whole = episodes(5, 9)
    whole.save(tmp_path / "whole")
    assert len(EpisodeReplay.load(tmp_path / "whole")) == 2
    with pytest.raises(DatasetError, match="valid: 1..19"):
        replay.add_episode({"observation": np.zeros((30, 2)), "action": np.zeros((29, 1)), "reward": np.zeros(29)}, terminal=False)


def test_mixture_splits_batches_by_weight():
    parts = {
        "low": (UniformSampler(numbered(10), batch_size=1, seed=0), 1.0),
        "high": (UniformSampler(numbered(1000), batch_size=1, seed=1), 3.0),
    }
    batch = WeightedMixture(parts, batch_size=4000, seed=2).next_batch()
    assert batch.batch_size == torch.Size([4000]) and 2850 < (batch["reward"] >= 10).sum() < 3100
    other = ReplayBuffer(3, {"observation": 2})
    other.extend({"observation": np.zeros((3, 2))})
    mixed = WeightedMixture({"a": parts["low"], "b": (UniformSampler(other, batch_size=1, seed=0), 1.0)}, batch_size=50, seed=0)
    with pytest.raises(DatasetError, match="'b': \\['observation'\\]"):
        mixed.next_batch()
    with pytest.raises(ValueError, match="valid"):
        WeightedMixture({"a": (parts["low"][0], -1.0)}, batch_size=1, seed=0)
