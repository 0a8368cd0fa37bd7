import math

import pytest
import torch

from rl_core.dvfb.losses import (
    actor_loss,
    effective_rank,
    fb_loss,
    implicit_reward,
    inverse_covariance,
    laplacian_loss,
    measure_target,
    orthonormality_error,
    orthonormality_loss,
    pair_loss,
    successor_feature_loss,
    successor_feature_target,
    successor_measure,
    td_loss,
    td_target,
)
from rl_core.dvfb.successor import successor_loss
from tests.rl_core.dvfb.small import config, make_batch, make_learner
from tests.rl_core.dvfb.tabular import AFTER, CELLS


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_fb_loss_is_the_papers_sum_over_pairs():
    n, f, b, fb, bb = 5, draw(2, 5, 3), draw(5, 3, seed=1), draw(2, 5, 3, seed=2), draw(5, 3, seed=3)
    discount = torch.tensor([0.9, 0.0, 0.9, 0.9, 0.9])
    expected = 0.0
    for head in range(2):
        for i in range(n):
            for j in range(n):
                bar = min(float(fb[0, i] @ bb[j]), float(fb[1, i] @ bb[j]))  # the minimum is taken entry by entry
                measure = float(f[head, i] @ b[j])
                expected += 0.5 * (measure - float(discount[i]) * bar) ** 2 / (n * (n - 1)) if i != j else -measure / n
    assert fb_loss(f, b, measure_target(fb, bb, discount)).item() == pytest.approx(expected, rel=1e-5)


def test_off_diagonal_leaves_exactly_the_diagonal_out():
    values, target = draw(6, 6), draw(6, 6, seed=1)
    base = pair_loss(values, target)
    diagonal = values + torch.diag(torch.full((6,), 3.0))
    assert pair_loss(diagonal, target).item() == pytest.approx(
        base.item() - 3.0, abs=1e-5
    )  # the diagonal enters only linearly, as its mean
    beside = values.clone()
    beside[2, 4] += 3.0
    change = 0.5 * ((beside[2, 4] - target[2, 4]) ** 2 - (values[2, 4] - target[2, 4]) ** 2) / 30
    assert pair_loss(beside, target).item() == pytest.approx((base + change).item(), abs=1e-5)


def test_the_batchs_loss_is_an_unbiased_estimate_of_the_expected_one():
    """Rows and goals of a batch come from the same transitions, which only the diagonal may notice."""
    following = AFTER.reshape(-1)
    values, target = draw(100, CELLS), draw(100, CELLS, seed=1)
    own = torch.nn.functional.one_hot(following, CELLS).float()
    rows = torch.randint(100, (4_000, 8), generator=torch.Generator().manual_seed(2))
    batches = torch.stack([pair_loss(values[batch][:, following[batch]], target[batch][:, following[batch]]) for batch in rows])
    error = batches.std() / math.sqrt(len(batches))
    assert abs(batches.mean() - pair_loss(values, target, own)) < 4 * error < 0.1


def test_without_discount_the_minimum_is_the_density_of_the_next_state():
    own = torch.nn.functional.one_hot(AFTER.reshape(-1), CELLS).float()
    density = (own * CELLS).requires_grad_()  # p(s' | s, a) / rho(s') with uniform rho
    target = measure_target(draw(1, 100, 3), draw(CELLS, 3), torch.zeros(100))
    (gradient,) = torch.autograd.grad(pair_loss(density, target, own), density)
    assert gradient.abs().max() < 1e-7
    (elsewhere,) = torch.autograd.grad(pair_loss(density + 1.0, target, own), density)
    assert elsewhere.abs().min() > 1e-5


def test_permuted_goals_permute_columns():
    f, b, order = draw(2, 6, 3), draw(6, 3, seed=1), torch.tensor([3, 1, 5, 0, 2, 4])
    assert torch.equal(successor_measure(f, b[order]), successor_measure(f, b)[..., order])
    discount = torch.full((6,), 0.9)
    assert torch.equal(measure_target(f, b[order], discount), measure_target(f, b, discount)[..., order])


def test_orthonormality_is_smallest_at_orthonormal_features():
    n, d = 400, 4
    q = torch.linalg.qr(draw(n, d))[0] * math.sqrt(n)
    best = orthonormality_loss(q)
    assert best.item() == pytest.approx(-d, abs=0.1) and orthonormality_error(q) < 1e-4
    assert all(orthonormality_loss(q * scale) > best + 0.1 for scale in (0.7, 1.3))
    skewed = q @ torch.diag(torch.tensor([1.0, 1.0, 1.0, 0.1]))
    assert orthonormality_loss(skewed) > best + 0.1 and orthonormality_error(skewed) > 0.3


def test_effective_rank_tells_a_collapsed_b():
    full = torch.linalg.qr(draw(100, 6))[0]
    assert effective_rank(full).item() == pytest.approx(6.0, rel=1e-4)
    assert effective_rank(draw(100, 1) @ draw(1, 6)).item() == pytest.approx(1.0, rel=1e-4)


def test_implicit_reward_is_the_projection_on_the_features():
    """For z = E r B the implicit reward is the least-squares fit of r by B."""
    b, weights = draw(500, 4), draw(4, seed=1)
    reward = b @ weights
    z = (reward.unsqueeze(-1) * b).mean(0)
    torch.testing.assert_close(implicit_reward(b, z.expand(500, -1)), reward, atol=1e-3, rtol=1e-3)


def test_few_features_have_an_inverse_covariance():
    assert torch.isfinite(inverse_covariance(draw(3, 8))).all()
    many = draw(40, 8)
    torch.testing.assert_close(inverse_covariance(many) @ (many.T @ many / 40), torch.eye(8), atol=1e-4, rtol=1e-4)


def test_values_and_targets_by_hand():
    values = torch.tensor([[1.0, 5.0], [2.0, 3.0]])
    target = td_target(torch.tensor([0.5, 0.5]), torch.tensor([0.9, 0.0]), values)
    torch.testing.assert_close(target, torch.tensor([1.4, 0.5]))
    assert td_loss(values, target).item() == pytest.approx((0.16 + 20.25) / 2 + (0.36 + 6.25) / 2, rel=1e-5)
    assert actor_loss(values, 2 * values, 10.0).item() == pytest.approx(-(10 * (2 + 6) / 2 + (1 + 3) / 2))
    assert actor_loss(None, values, 10.0).item() == pytest.approx(-20.0) and actor_loss(values, None, 10.0).item() == pytest.approx(-2.0)


def test_successor_features_follow_the_worse_head():
    forward = torch.stack([torch.ones(3, 2), torch.full((3, 2), 2.0)])
    skill = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [1.0, 1.0]])
    target = successor_feature_target(torch.full((3, 2), 10.0), torch.tensor([0.5, 0.5, 0.0]), forward, skill)
    torch.testing.assert_close(target, torch.tensor([[10.5, 10.5], [11.0, 11.0], [10.0, 10.0]]))
    assert successor_feature_loss(forward, torch.ones(3, 2)).item() == pytest.approx(1.0)
    features = draw(50, 3)
    still = orthonormality_loss(features)
    assert laplacian_loss(features, features).item() == pytest.approx(still.item())
    assert laplacian_loss(features, features + 2.0).item() == pytest.approx(still.item() + 4.0, rel=1e-4)


@pytest.mark.parametrize("variant", ["full", "sf_laplacian"])
def test_targets_carry_no_gradient(variant):
    learner = make_learner(variant=variant)
    step = learner.step_of(make_batch())
    assert not step.next_action.requires_grad and not step.skill.requires_grad
    loss, _ = successor_loss(learner.config, learner.nets, step)
    loss.backward()
    for module in (learner.nets.f_target, learner.nets.b_target, learner.actor, learner.critic):
        assert all(parameter.grad is None for parameter in module.parameters())
    assert all(parameter.grad is not None for module in (learner.nets.f, learner.nets.b) for parameter in module.parameters())


def test_the_auxiliary_loss_trains_f_and_not_b():
    learner = make_learner()
    step, gradients = learner.step_of(make_batch()), {}
    for coefficient in (0.0, 1.0):
        loss, metrics = successor_loss(config(q_loss_coef=coefficient), learner.nets, step)
        assert ("loss/skill_value" in metrics) == (coefficient > 0)
        parts = [next(iter(net.parameters())) for net in (learner.nets.f, learner.nets.b)]
        gradients[coefficient] = torch.autograd.grad(loss, parts)
    assert torch.equal(gradients[0.0][1], gradients[1.0][1])
    assert not torch.allclose(gradients[0.0][0], gradients[1.0][0])
