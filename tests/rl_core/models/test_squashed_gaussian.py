"""SAC's actor: its density is that of what it draws."""

from __future__ import annotations

import pytest
import torch

from rl_core.models.squashed_gaussian import SquashedGaussian


def make(**options: object) -> SquashedGaussian:
    return SquashedGaussian(3, 2, (16,), generator=torch.Generator().manual_seed(0), **options)


def test_log_prob_is_that_of_torchs_transformed_gaussian() -> None:
    actor, x = make(), torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
    action, log_prob = actor.sample(x, torch.randn(5, 2, generator=torch.Generator().manual_seed(2)))
    mean, log_std = actor(x)
    gaussian = torch.distributions.Normal(mean, log_std.exp())
    wanted = torch.distributions.TransformedDistribution(gaussian, torch.distributions.TanhTransform(cache_size=1)).log_prob(action).sum(-1)
    assert torch.allclose(log_prob, wanted, atol=1e-4)


def test_density_integrates_to_one() -> None:
    actor = SquashedGaussian(1, 1, (8,), generator=torch.Generator().manual_seed(3))
    x = torch.zeros(20_001, 1)
    mean, log_std = actor(x)
    action = torch.linspace(-0.99999, 0.99999, 20_001).unsqueeze(1)
    found, log_prob = actor.sample(x, (torch.atanh(action) - mean) / log_std.exp())
    assert torch.allclose(found, action, atol=1e-5)
    assert float(torch.trapezoid(log_prob.exp().squeeze(), action.squeeze()).detach()) == pytest.approx(1.0, abs=2e-3)


def test_saturated_actions_have_finite_densities_and_gradients() -> None:
    actor, x = make(), torch.zeros(1, 3)
    action, log_prob = actor.sample(x, torch.full((1, 2), 200.0))
    log_prob.sum().backward()
    assert (action.abs() <= 1.0).all() and torch.isfinite(log_prob).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in actor.parameters())


def test_mode_is_the_sample_without_noise_and_log_std_is_clipped() -> None:
    actor, x = make(log_std=(-1.0, -1.0)), torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(actor.mode(x), actor.sample(x, torch.zeros(4, 2))[0])
    assert torch.equal(actor(x)[1], torch.full((4, 2), -1.0))
