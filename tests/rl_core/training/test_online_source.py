from __future__ import annotations

import numpy as np
import pytest
import torch

from rl_core.data.episode import DatasetError
from rl_core.data.replay import ReplayBuffer
from rl_core.data.samplers import UniformSampler
from rl_core.training.config import TrainerConfig
from rl_core.training.seeding import derive_seed
from rl_core.training.sources import OnlineSource, RandomPolicy, transition_columns
from rl_core.training.trainer import Trainer
from tests.rl_core.training.toy import CONTRACT, PointWorld, ToyLearner


def make_source(folder, learner=None, *, n_envs=1, steps_per_batch=1, capacity=60, random_steps=20, end="truncated", **options):
    replay = ReplayBuffer(capacity, transition_columns(CONTRACT))
    explore = learner.policy if learner is not None else lambda: RandomPolicy(CONTRACT)
    return OnlineSource(
        lambda: PointWorld(end=end),
        explore,
        CONTRACT,
        UniformSampler(replay, batch_size=8, seed=1),
        replay,
        folder,
        seed=0,
        n_envs=n_envs,
        steps_per_batch=steps_per_batch,
        random_steps=random_steps,
        **options,
    )


def run(run_dir, *, updates=120, stop_at=0, resume=False, seed=0, **options):
    learner = ToyLearner(seed)
    source = make_source(run_dir / "replay", learner, **options)
    config = TrainerConfig(updates=updates, log_every=10, checkpoint_every=25)
    trainer = Trainer(learner, source, config, run_dir)
    update = learner.update

    def update_and_stop(batch):
        if learner.steps + 1 == stop_at:
            trainer.stop()
        return update(batch)

    learner.update = update_and_stop
    return learner, source, trainer.run(resume=resume)


@pytest.mark.parametrize("options", [{}, {"n_envs": 3}, {"steps_per_batch": 4}, {"n_envs": 2, "steps_per_batch": 20}], ids=str)
def test_resume_is_resume_online(tmp_path, options):
    whole, whole_source, _ = run(tmp_path / "whole", **options)
    _, stopped_source, stopped = run(tmp_path / "cut", stop_at=50, **options)
    assert 50 <= stopped.step < 70 and stopped_source.at_checkpoint
    resumed, source, result = run(tmp_path / "cut", resume=True, seed=4, **options)
    assert result.finished
    assert torch.equal(whole.weights(), resumed.weights())
    assert np.array_equal(whole_source.replay.rows, source.replay.rows) and whole_source.replay.added == source.replay.added
    assert whole_source.episodes == source.episodes


def test_rows_are_transitions_of_single_episodes(tmp_path):
    source = make_source(tmp_path, n_envs=2, capacity=500, end="terminated")
    for _ in range(100):
        source.next_batch()
    batch = source.replay.gather(np.arange(len(source.replay)))
    ends = batch["terminal"].bool()
    assert ends.sum() == source.episodes > 10
    worlds: list[list[int]] = []  # rows of the two worlds are interleaved: each row continues exactly one open episode
    for row in range(len(source.replay)):
        for chain in worlds:
            if torch.equal(batch["next_observation"][chain[-1]], batch["observation"][row]):
                assert not ends[chain[-1]]
                chain.append(row)
                break
        else:
            worlds.append([row])
    finished = [chain for chain in worlds if ends[chain[-1]]]
    assert len(finished) == source.episodes and all(5 <= len(chain) <= 9 for chain in finished)


def test_a_time_limit_is_no_terminal(tmp_path):
    source = make_source(tmp_path, capacity=500)
    for _ in range(50):
        source.next_batch()
    assert source.episodes > 3
    assert source.replay.gather(np.arange(len(source.replay)))["terminal"].sum() == 0


def test_episode_k_resets_with_a_seed_of_its_own(tmp_path, monkeypatch):
    seeds = []
    reset = PointWorld.reset
    monkeypatch.setattr(PointWorld, "reset", lambda self, *, seed=None, options=None: seeds.append(seed) or reset(self, seed=seed))
    source = make_source(tmp_path, n_envs=2, capacity=500)
    for _ in range(60):
        source.next_batch()
    assert len(seeds) > 8 and seeds == [derive_seed(0, "episode", k) for k in range(len(seeds))]


def test_steps_per_batch_is_kept_on_average(tmp_path):
    for steps in (1, 3, 25):
        source = make_source(tmp_path, steps_per_batch=steps, capacity=5000, random_steps=0)
        for _ in range(100):
            source.next_batch()
        assert 100 * steps - steps < source.replay.added <= 100 * steps


def test_a_checkpoint_in_the_middle_of_a_round_is_refused(tmp_path):
    source = make_source(tmp_path, random_steps=1)
    source.next_batch()
    assert not source.at_checkpoint
    with pytest.raises(RuntimeError, match="only between rounds"):
        source.state_dict()


def test_reward_free_collection_stores_none(tmp_path):
    source = make_source(tmp_path, rewards=False)
    source.next_batch()
    assert source.replay.gather(np.arange(len(source.replay)))["reward"].abs().sum() == 0


def test_the_replay_is_saved_as_shards_that_only_grow(tmp_path):
    run(tmp_path)
    shards = sorted(file.name for file in (tmp_path / "replay").glob("rows-*"))
    assert len(shards) > 2
    source = make_source(tmp_path / "other", capacity=10)
    with pytest.raises(DatasetError, match="this run's is"):
        make_source(tmp_path / "replay", capacity=61).load_state_dict({"replay": {"added": 30}})
    assert source.at_checkpoint
