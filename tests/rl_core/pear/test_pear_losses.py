"""PEAR's loss terms against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from rl_core.pear.bounds import bound_factor, expert_divergence
from rl_core.pear.losses import (
    adversarial_loss,
    cloning_loss,
    critic_loss,
    critic_target,
    discriminator_loss,
    margin_loss,
    q_filter,
    sac_loss,
)
from tests.rl_core.pear.point_world import tiny


def test_critic_targets_stay_among_the_values_there_can_be() -> None:
    reward = torch.tensor([-1.0, 0.0, -1.0, -1.0])
    value = torch.tensor([-500.0, 40.0, -3.0, -3.0])
    target = critic_target(reward, torch.tensor([0.0, 0.0, 0.0, 1.0]), value, gamma=0.9, bounds=(-10.0, 0.0))
    assert target.tolist() == pytest.approx([-10.0, 0.0, -3.7, -1.0])


def test_critic_loss_is_half_the_mean_square_of_each_critic() -> None:
    values = torch.tensor([[0.0, -2.0], [-1.0, -1.0]])
    assert float(critic_loss(values, torch.tensor([-1.0, -1.0]))) == pytest.approx(0.5 * 1.0 + 0.0)


def test_margin_lowers_replayed_and_raises_demonstrated_values() -> None:
    replay, expert = torch.tensor([[-1.0, -2.0], [-3.0, -4.0]], requires_grad=True), torch.tensor([[-5.0], [-6.0]], requires_grad=True)
    loss = margin_loss(replay, expert)
    assert float(loss.detach()) == pytest.approx(0.5 * ((-3.0 + 5.0) + (-7.0 + 6.0)) / 2)
    loss.backward()
    assert (replay.grad > 0).all() and (expert.grad < 0).all()


def test_sac_loss_by_hand() -> None:
    loss = sac_loss(
        torch.tensor([-2.0, -4.0]), torch.tensor([1.0, 3.0]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]), entropy=0.05, action_l2=0.5
    )
    assert float(loss) == pytest.approx(0.05 * 2.0 + 3.0 + 0.5 * 0.5)


def test_filtered_rows_have_no_cloning_gradient() -> None:
    own = torch.tensor([[0.5, 0.0], [0.5, 0.0], [0.5, 0.0]], requires_grad=True)
    expert = torch.tensor([[1.0, 0.0], [1.0, 1.0], [-1.0, 0.0]])
    kept = q_filter(torch.tensor([-3.0, -1.0, -2.0]), torch.tensor([-2.0, -2.0, -2.0]))
    loss = cloning_loss(own, expert, kept)
    loss.backward()
    assert kept.tolist() == [0.0, 1.0, 0.0]  # a tie keeps nothing
    assert float(loss.detach()) == pytest.approx(0.25 + 1.0)  # a sum over rows and dimensions
    assert own.grad.tolist() == [[0.0, 0.0], [-1.0, -2.0], [0.0, 0.0]]


def test_adversary_has_targets_one_and_minus_one() -> None:
    assert float(discriminator_loss(torch.tensor([1.0, 1.0]), torch.tensor([-1.0]))) == 0.0
    assert float(discriminator_loss(torch.tensor([0.0, 1.0]), torch.tensor([0.0]))) == pytest.approx(0.5 + 1.0)
    assert float(adversarial_loss(torch.tensor([1.0, -1.0]))) == pytest.approx(2.0)


def test_divergence_is_the_total_variation_of_two_gaussians() -> None:
    """Against an integral of |p - q| / 2 over a grid."""
    mean, std = 0.3, 0.7
    grid = torch.linspace(-15, 15, 200_001, dtype=torch.float64)
    total = []
    for raw in (1.1, 0.3, 3.0):
        p, q = (torch.exp(-0.5 * ((grid - centre) / std) ** 2) / (std * math.sqrt(2 * math.pi)) for centre in (mean, raw))
        wanted = float(0.5 * (p - q).abs().sum() * (grid[1] - grid[0]))
        expert = torch.tensor([[math.tanh(raw)]])
        found = float(expert_divergence(torch.full((1, 1), mean), torch.full((1, 1), math.log(std)), expert)["bound/divergence"])
        assert found == pytest.approx(wanted, abs=1e-4)
        total.append(found)
    rows = torch.tensor([[math.tanh(raw)] for raw in (1.1, 0.3, 3.0)])
    figures = expert_divergence(torch.full((3, 1), mean), torch.full((3, 1), math.log(std)), rows)
    assert float(figures["bound/divergence"]) == pytest.approx(sum(total) / 3, abs=1e-5)
    assert float(figures["bound/far_share"]) == pytest.approx(1 / 3)


def test_bound_factor_is_larger_at_the_lower_level() -> None:
    config = tiny(gamma=0.99, primitive_steps=15)
    assert bound_factor(config, "low") == pytest.approx(2 / 0.01**2)
    assert bound_factor(config, "high") == pytest.approx(2 / (0.01 * (1 - 0.99**15)))
