from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from rl_core.baselines.bc import BCConfig, BCLearner, bc_loss, head_size, policy_from_bundle, split_head
from rl_core.baselines.bc_best_half import best_half
from rl_core.bundle import Bundle, BundleError
from rl_core.data.episode import Dataset, DatasetError
from rl_core.methods import make_source
from tests.rl_core.training.synthetic import CONTRACT, synthetic_dataset

HEADS = ["deterministic", "gaussian", "gmm"]


def observe(n: int, seed: int = 0) -> TensorDict:
    generator = torch.Generator().manual_seed(seed)
    return TensorDict({c.name: torch.randn(n, c.size, generator=generator) for c in CONTRACT.observation}, batch_size=[n])


@pytest.mark.parametrize("head", HEADS)
def test_every_head_learns_what_was_shown(head):
    dataset = synthetic_dataset(episodes=3, steps=30)
    dataset = dataclasses.replace(dataset, episodes=dataset.episodes[:1] * 1)
    config = BCConfig(head=head, hidden=(64,), batch_size=16, lr=3e-3)
    learner = BCLearner(config, CONTRACT, data=dataset)
    source = make_source("bc", config, dataset)
    losses = [float(learner.update(source.next_batch())["loss/actor"]) for _ in range(300)]
    assert np.mean(losses[-20:]) < np.mean(losses[:20]) - 0.1
    episode = dataset.episodes[0]
    obs = TensorDict({name: torch.from_numpy(values[:-1]) for name, values in episode.observations.items()}, batch_size=[len(episode)])
    policy = learner.policy()
    chunk, _ = policy.act(obs, policy.prepare({}), policy.reset(range(len(episode))))
    assert (chunk.values[:, 0] - torch.from_numpy(episode.actions)).abs().mean() < 0.25


def test_gaussian_loss_is_the_normal_density():
    config = BCConfig(head="gaussian", hidden=(8,))
    output, action = torch.randn(5, head_size(config, 2)), torch.rand(5, 2) * 2 - 1
    _, mean, std = split_head(config, output, 2)
    expected = -torch.distributions.Normal(mean[:, 0], std[:, 0]).log_prob(action).sum(-1).mean()
    torch.testing.assert_close(bc_loss(config, output, action), expected)


def test_gmm_loss_is_torchs_mixture():
    config = BCConfig(head="gmm", modes=4)
    output, action = torch.randn(6, head_size(config, 3)), torch.rand(6, 3) * 2 - 1
    log_weights, mean, std = split_head(config, output, 3)
    d = torch.distributions
    mixture = d.MixtureSameFamily(d.Categorical(logits=log_weights), d.Independent(d.Normal(mean, std), 1))
    torch.testing.assert_close(bc_loss(config, output, action), -mixture.log_prob(action).mean())
    assert std.min() >= config.min_std


def two_ways(steps: int = 64) -> Dataset:
    """Half the demonstrations go left, half right, from the same place."""
    dataset = synthetic_dataset(episodes=2, steps=steps)
    episodes = []
    for episode, side in zip(dataset.episodes, (-0.7, 0.7), strict=True):
        actions = np.full_like(episode.actions, side)
        still = {name: np.zeros_like(values) for name, values in episode.observations.items()}
        episodes.append(dataclasses.replace(episode, actions=actions, observations=still))
    return dataclasses.replace(dataset, episodes=tuple(episodes))


def test_gmm_keeps_both_ways_where_the_mean_goes_between():
    dataset = two_ways()
    obs = TensorDict({c.name: torch.zeros(400, c.size) for c in CONTRACT.observation}, batch_size=[400])
    chosen = {}
    for head in ("deterministic", "gmm"):
        config = BCConfig(head=head, hidden=(16,), batch_size=64, lr=1e-2, modes=2)
        learner = BCLearner(config, CONTRACT, data=dataset)
        source = make_source("bc", config, dataset)
        for _ in range(400):
            learner.update(source.next_batch())
        policy = learner.policy()
        chosen[head] = policy.act(obs, policy.prepare({}), policy.reset(range(400)))[0].values[:, 0, 0]
    assert chosen["deterministic"].abs().max() < 0.2
    left, right = (chosen["gmm"] < -0.5).float().mean(), (chosen["gmm"] > 0.5).float().mean()
    assert left > 0.35 and right > 0.35


def test_gmm_draws_from_the_rows_own_generator():
    learner = BCLearner(BCConfig(head="gmm", hidden=(8,)), CONTRACT, data=synthetic_dataset())
    policy = learner.policy()
    draw = policy.act(observe(6), policy.prepare({}), policy.reset(range(6)))[0].values
    other = policy.act(observe(6), policy.prepare({}), policy.reset([9, 8, 2, 7, 6, 5]))[0].values
    assert torch.equal(draw[2], other[2]) and not torch.equal(draw, other)


def test_a_constant_dimension_gives_a_finite_loss_and_action():
    dataset = synthetic_dataset()
    episodes = []
    for episode in dataset.episodes:
        actions = episode.actions.copy()
        actions[:, 3] = 0.04
        episodes.append(
            dataclasses.replace(
                episode, actions=actions, observations={**episode.observations, "goal": episode.observations["goal"] * 0 + 2}
            )
        )
    dataset = dataclasses.replace(dataset, episodes=tuple(episodes))
    for head in HEADS:
        learner = BCLearner(BCConfig(head=head, hidden=(8,)), CONTRACT, data=dataset)
        source = make_source("bc", learner.config, dataset)
        assert all(math.isfinite(learner.update(source.next_batch())["loss/actor"]) for _ in range(20))


def test_statistics_left_out_of_a_bundle_are_noticed():
    bundle = BCLearner(BCConfig(hidden=(8,)), CONTRACT, data=synthetic_dataset()).bundle()
    with pytest.raises(BundleError, match="field normalizer is null"):
        policy_from_bundle(dataclasses.replace(bundle, normalizer=None))
    with pytest.raises(BundleError, match="weights.safetensors does not fit"):
        policy_from_bundle(dataclasses.replace(bundle, config={**bundle.config, "hidden": [9]}))
    with pytest.raises(BundleError, match="field contract is null"):
        policy_from_bundle(dataclasses.replace(bundle, contract=None))


def test_renamed_statistics_are_refused():
    bundle = BCLearner(BCConfig(hidden=(8,)), CONTRACT, data=synthetic_dataset()).bundle()
    renamed = {("actions" if key == "action" else key): value for key, value in bundle.normalizer.items()}
    with pytest.raises(ValueError, match=r"'actions'.*'action'"):
        policy_from_bundle(dataclasses.replace(bundle, normalizer=renamed))


def test_deploy_keeps_statistics_of_bc(tmp_path):
    """What was trained on normalised observations acts on raw ones alike after loading."""
    learner = BCLearner(BCConfig(hidden=(8,)), CONTRACT, data=synthetic_dataset())
    policy, loaded = learner.policy(), policy_from_bundle(Bundle.load(learner.bundle().save(tmp_path / "bundle")))
    act = lambda p: p.act(observe(5), p.prepare({}), p.reset(range(5)))[0].values  # noqa: E731
    assert torch.equal(act(policy), act(loaded))
    loaded.normalizer = None
    assert not torch.allclose(act(policy), act(loaded))


def test_best_half_is_the_half_with_the_highest_return():
    dataset = synthetic_dataset(episodes=5)
    kept = best_half(dataset)
    returns = sorted((episode.episode_return for episode in dataset.episodes), reverse=True)
    assert sorted((episode.episode_return for episode in kept.episodes), reverse=True) == returns[:3]
    order = [episode.uuid for episode in dataset.episodes]
    assert [episode.uuid for episode in kept.episodes] == [uuid for uuid in order if uuid in {e.uuid for e in kept.episodes}]
    with pytest.raises(DatasetError, match="no episodes"):
        best_half(Dataset(contract=CONTRACT, episodes=()))
