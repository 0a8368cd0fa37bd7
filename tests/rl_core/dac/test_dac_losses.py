"""The exact checks: every loss term against a value worked out by hand."""

import pytest
import torch

from rl_core.dac.losses import (
    bc_loss,
    bellman_target,
    critic_loss,
    dual_step,
    guidance_loss,
    guidance_weight,
    next_state_value,
    q_gradient,
    q_scale,
)
from rl_core.models.diffusion import vp_schedule


@pytest.mark.parametrize("guidance", ["soft", "hard"])
@pytest.mark.parametrize("eta", [0.5, 2.0])
def test_minimum_of_the_actor_loss_is_the_shifted_noise(guidance, eta):
    """With a free tensor as network, gradient descent ends at e - w g / (2 eta), w = sqrt(1 - abar_t) (soft) or 1 (hard)."""
    schedule, generator = vp_schedule(5), torch.Generator().manual_seed(0)
    t = torch.randint(1, 6, (64,), generator=generator)
    noise, gradient = torch.randn(64, 3, generator=generator), torch.randn(64, 3, generator=generator)
    free = torch.zeros(64, 3, requires_grad=True)
    weight = guidance_weight(schedule, t, guidance=guidance)
    for _ in range(400):
        loss = eta * bc_loss(free, noise) + guidance_loss(free, gradient, weight)
        (step,) = torch.autograd.grad(loss, free)
        free.data -= 10.0 * step
    level = (1 - schedule.alpha_bar[t]).sqrt().unsqueeze(-1) if guidance == "soft" else 1.0
    torch.testing.assert_close(free.detach(), noise - level * gradient / (2 * eta), atol=1e-3, rtol=0)


def test_losses_are_means_over_batch_and_dimensions():
    predicted, noise = torch.zeros(4, 7), torch.ones(4, 7)
    assert bc_loss(predicted, noise) == 1.0
    assert guidance_loss(noise, 3 * noise, torch.full((4, 1), 0.5)) == 1.5
    assert critic_loss(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0])).item() == pytest.approx((0 + 1 + 4 + 9) / 4)


def test_lower_confidence_bound_by_hand():
    # two heads, one state, two actions: action means 1 and 3, so mean 2 and population std 1
    values = torch.tensor([[[0.0, 2.0]], [[2.0, 4.0]]])
    options = {"target": "lcb", "next_value": "mean"}
    assert next_state_value(values, rho=0.0, **options).item() == pytest.approx(2.0)
    assert next_state_value(values, rho=1.5, **options).item() == pytest.approx(0.5)
    assert next_state_value(values, rho=1.0, target="lcb", next_value="max").item() == pytest.approx(2.0)  # heads 2 and 4
    assert next_state_value(values, rho=1.0, target="min", next_value="mean").item() == pytest.approx(1.0)


def test_actions_are_joined_inside_each_head_before_heads_are_compared():
    # heads disagree on every action but agree on the average: no spread is left
    values = torch.tensor([[[0.0, 2.0]], [[2.0, 0.0]]])
    assert next_state_value(values, rho=5.0, target="lcb", next_value="mean").item() == pytest.approx(1.0)


def test_more_pessimism_never_raises_the_value():
    values = torch.randn(10, 256, 10, generator=torch.Generator().manual_seed(0))
    by_rho = torch.stack([next_state_value(values, rho=rho, target="lcb", next_value="mean") for rho in (0.0, 0.5, 1.0, 1.5)])
    assert (by_rho.diff(dim=0) <= 0).all()


def test_time_limit_is_bootstrapped_and_terminal_is_not():
    reward, value = torch.tensor([1.0, 1.0]), torch.tensor([10.0, 10.0])
    # column `terminal` is 0 for a truncated episode
    torch.testing.assert_close(bellman_target(reward, torch.tensor([1.0, 0.0]), value, gamma=0.9), torch.tensor([1.0, 10.0]))


@pytest.mark.parametrize(("bc", "expected"), [(5.0, 1.1), (0.7, 1.02), (0.5, 1.0), (0.3, 0.98), (-5.0, 0.9)])
def test_dual_step_follows_the_clipped_gap(bc, expected):
    eta = dual_step(torch.tensor(1.0), torch.tensor(bc), threshold=0.5, rate=0.1, low=1e-3, high=100.0)
    assert eta.item() == pytest.approx(expected, abs=1e-6)


def test_dual_step_keeps_its_bounds():
    limits = {"threshold": 0.5, "rate": 0.1, "low": 1e-3, "high": 100.0}
    assert dual_step(torch.tensor(0.05), torch.tensor(-1.0), **limits).item() == pytest.approx(1e-3)
    assert dual_step(torch.tensor(99.99), torch.tensor(9.0), **limits).item() == pytest.approx(100.0)


def test_q_gradient_is_of_the_ensemble_mean_at_the_noisy_action():
    slopes = torch.tensor([1.0, 3.0])

    def q(observation, action):
        return slopes[:, None] * (action**2).sum(-1)

    x, observation = torch.tensor([[0.5, -1.0]]), torch.zeros(1, 1)
    torch.testing.assert_close(q_gradient(q, observation, x), 2 * 2 * x)
    assert q_scale(lambda o, a: torch.tensor([[-1.0, 3.0], [2.0, -4.0]]), observation, x) == 2.5
