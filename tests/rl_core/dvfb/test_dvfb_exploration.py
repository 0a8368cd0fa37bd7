import math

import numpy as np
import pytest
import torch

from rl_core.dvfb.contrastive import ContrastiveEncoder, contrastive_entropy, contrastive_loss
from rl_core.dvfb.moments import RunningMoments
from rl_core.dvfb.networks import BackwardNet, orthogonal
from rl_core.dvfb.novelty import Novelty
from rl_core.dvfb.optimizer import PlainAdam
from tests.rl_core.dvfb.small import config

SIZES = config(z_dim=8, hidden=64, novelty_features=16, backward_hidden=32)


def seeded(module, seed: int = 0):
    return orthogonal(module, torch.Generator().manual_seed(seed))


def random_walk(steps: int, seed: int = 0) -> torch.Tensor:
    moves = torch.randn(steps, 2, generator=torch.Generator().manual_seed(seed))
    return 0.3 * moves.cumsum(0)


def test_running_moments_are_those_of_all_numbers():
    moments, generator = RunningMoments(), torch.Generator().manual_seed(0)
    parts = [5.0 + 3.0 * torch.randn(n, generator=generator) for n in (7, 100, 31)]
    for part in parts:
        moments.update(part)
    everything = torch.cat(parts).double()
    torch.testing.assert_close(moments.mean, everything.mean())
    torch.testing.assert_close(moments.variance, everything.var(correction=0))


def test_moments_with_a_window_forget():
    whole, window = RunningMoments(), RunningMoments(window=10)
    for values in [torch.tensor([-100.0, 100.0])] * 20 + [torch.tensor([4.0, 6.0])] * 100:
        whole.update(values)
        window.update(values)
    assert window.mean.item() == pytest.approx(5.0, abs=0.1) and window.variance.item() == pytest.approx(1.0, abs=2.0)
    assert whole.variance.item() > 1000


def test_a_visited_region_is_less_novel_than_an_unseen_one():
    novelty, generator = seeded(Novelty(SIZES, 2)), torch.Generator().manual_seed(1)
    optimizer = PlainAdam(novelty.parameters(), lr=1e-3)

    def points(count: int, low: float, high: float) -> torch.Tensor:
        return torch.rand(count, 2, generator=generator) * torch.tensor([high - low, 2.0]) + torch.tensor([low, -1.0])

    for _ in range(400):
        optimizer.minimize(novelty.error(*novelty.look(points(128, -1.0, 0.0))).mean())
    before = {name: value.clone() for name, value in novelty.random.state_dict().items()}
    reward = novelty.reward(*novelty.look(torch.cat([points(116, -1.0, 0.0), points(12, 0.6, 1.0)])))
    assert reward[:116].mean() < 0.5 * reward[116:].mean()
    assert (reward >= 0).all()  # the mean is not subtracted
    assert all(torch.equal(value, novelty.random.state_dict()[name]) for name, value in before.items())


def test_novelty_is_told_in_units_of_its_running_deviation():
    novelty, points = seeded(Novelty(SIZES, 2)), torch.randn(500, 2, generator=torch.Generator().manual_seed(0))
    seen = novelty.look(points)
    error, reward = novelty.error(*seen).detach(), novelty.reward(*seen)
    torch.testing.assert_close(reward, error / error.std(correction=0), rtol=1e-4, atol=1e-5)
    assert reward.requires_grad is False


def encoded(encoder, b, walk, rows):
    observation, following = walk[rows], walk[rows + 1]
    return encoder(observation, following, b(following).detach())


def test_contrastive_loss_learns_which_skill_a_transition_shows():
    walk, encoder, b = random_walk(2000), seeded(ContrastiveEncoder(SIZES, 2)), seeded(BackwardNet(2, 32, 8), 1)
    optimizer, generator, n = PlainAdam(encoder.parameters(), lr=1e-3), torch.Generator().manual_seed(2), 128
    losses = []
    for _ in range(500):
        query, key = encoded(encoder, b, walk, torch.randint(1999, (n,), generator=generator))
        loss = contrastive_loss(query, key, temperature=1.0)
        optimizer.minimize(loss)
        losses.append(loss.item())
    with torch.no_grad():
        query, key = encoded(encoder, b, walk, torch.randint(1999, (n,), generator=generator))
    cosine = query @ key.T
    matched, unmatched = cosine.diagonal().mean(), (cosine.sum() - cosine.trace()) / (n * (n - 1))
    assert matched - unmatched >= 0.2
    assert losses[-1] < losses[0] and min(losses) > math.log(n - 1) - 2 - 0.05
    entropy = contrastive_entropy(query, key, neighbours=12, kind="nearest")
    assert entropy.min() >= 0 and entropy.max() <= math.log(3)


def test_contrastive_loss_of_unrelated_vectors_is_log_n():
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.nn.functional.normalize(torch.randn(512, 64, generator=generator), dim=-1) for _ in range(2))
    assert contrastive_loss(query, key, temperature=1.0).item() == pytest.approx(math.log(511), abs=0.05)
    best = contrastive_loss(query, query, temperature=1.0).item()
    assert math.log(511) - 2 <= best < math.log(511) - 0.9


def test_contrastive_entropy_by_hand():
    angles = torch.tensor([0.0, 0.5, 1.0, math.pi])
    query = torch.stack([angles.cos(), angles.sin()], -1)
    key = torch.tensor([[1.0, 0.0]])
    near = contrastive_entropy(query, key, neighbours=2, kind="nearest")
    far = contrastive_entropy(query, key, neighbours=2, kind="farthest")
    assert near.item() == pytest.approx(math.log(1 + (0 + 1 - math.cos(0.5)) / 2), rel=1e-5)
    assert far.item() == pytest.approx(math.log(1 + (2 + 1 - math.cos(1.0)) / 2), rel=1e-5)
    everything = contrastive_entropy(query, key, neighbours=99, kind="nearest")
    assert everything.item() == pytest.approx(math.log(1 + float(np.mean(1 - np.cos(angles.numpy())))), rel=1e-5)
    opposite = contrastive_entropy(-key.expand(5, -1), key, neighbours=3, kind="nearest")
    assert opposite.item() == pytest.approx(math.log(3), rel=1e-5)
