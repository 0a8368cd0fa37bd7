"""The mixture head against torch.distributions, and what acting with low noise draws."""

from __future__ import annotations

import torch
from torch import distributions as D

from rl_core.models.gmm import LOW_NOISE_STD, GaussianMixture, GMMHead


def _head(seed: int = 0) -> GMMHead:
    torch.manual_seed(seed)
    return GMMHead(6, 3, modes=4, min_std=0.005)


def test_the_log_likelihood_is_that_of_torch_distributions() -> None:
    mixture = _head()(torch.randn(7, 5, 6))
    components = D.Independent(D.Normal(mixture.means, mixture.stds), 1)
    expected = D.MixtureSameFamily(D.Categorical(logits=mixture.log_weights), components)
    actions = torch.rand(7, 5, 3) * 2 - 1
    torch.testing.assert_close(mixture.log_prob(actions), expected.log_prob(actions))


def test_shapes_and_bounds_of_the_parameters() -> None:
    head = _head()
    mixture = head(100 * torch.randn(2, 5, 6))
    assert mixture.log_weights.shape == (2, 5, 4) and mixture.means.shape == mixture.stds.shape == (2, 5, 4, 3)
    torch.testing.assert_close(mixture.log_weights.exp().sum(-1), torch.ones(2, 5))
    assert mixture.means.abs().max() <= 1 and mixture.stds.min() >= 0.005
    assert head(torch.full((1, 6), -1e4)).stds.min() >= 0.005  # softplus is 0 there


def test_low_noise_draws_are_a_components_mean_and_the_uniform_number_picks_it_by_its_weight() -> None:
    weights = torch.tensor([0.2, 0.5, 0.3])
    means = torch.tensor([[-0.5, 0.1], [0.0, 0.2], [0.5, 0.3]])
    mixture = GaussianMixture(weights.log(), means, torch.ones(3, 2))
    for uniform, chosen in ((0.0, 0), (0.19, 0), (0.21, 1), (0.69, 1), (0.71, 2), (0.9999999, 2)):
        exact = mixture.draw_low_noise(torch.tensor(uniform), torch.zeros(2))
        torch.testing.assert_close(exact, means[chosen])
    noise = torch.tensor([1.0, -2.0])
    torch.testing.assert_close(mixture.draw_low_noise(torch.tensor(0.5), noise), means[1] + LOW_NOISE_STD * noise)
    many = GaussianMixture(weights.log().expand(20_000, 3), means.expand(20_000, 3, 2), torch.ones(20_000, 3, 2))
    drawn = many.draw_low_noise(torch.rand(20_000, generator=torch.Generator().manual_seed(0)), torch.zeros(20_000, 2))
    shares = torch.stack([(drawn == mean).all(-1).float().mean() for mean in means])
    torch.testing.assert_close(shares, weights, atol=0.02, rtol=0)


def test_more_likely_actions_follow_from_a_step_up_the_likelihood() -> None:
    head, features, action = _head(), torch.randn(8, 6), torch.rand(8, 3) - 0.5
    before = head(features).log_prob(action).mean()
    before.backward()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter += 0.01 * parameter.grad
    assert head(features).log_prob(action).mean() > before
