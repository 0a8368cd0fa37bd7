import math

import pytest
import torch

from rl_core.dvfb.goals import goal_inputs, goal_size, reached_goal
from rl_core.dvfb.skills import mixed_skills, noisy_action, on_sphere
from tests.rl_core.dvfb.small import make_batch, make_learner


@pytest.mark.parametrize("variant", ["full", "sf_laplacian"])
@pytest.mark.parametrize("mix_ratio", [0.0, 0.5, 1.0])
def test_every_skill_has_norm_sqrt_d(variant, mix_ratio):
    learner = make_learner(variant=variant, mix_ratio=mix_ratio)
    skills = learner.step_of(make_batch()).skill
    torch.testing.assert_close(skills.norm(dim=-1), torch.full((32,), math.sqrt(4)), atol=1e-5, rtol=0)


def test_about_half_of_a_batch_asks_for_states_of_another_row():
    learner = make_learner()
    batch = make_batch(size=4000)
    skills, features = learner.step_of(batch).skill, learner.nets.b(batch["next_observation"]).detach()
    nearest = torch.cdist(skills, features).min(dim=1)
    mixed = nearest.values < 1e-3
    assert 0.45 < mixed.float().mean() < 0.55
    own = nearest.indices[mixed] == torch.arange(4000)[mixed]
    assert own.float().mean() < 0.05  # B of a shuffled row, not of its own


def test_mixing_takes_features_where_the_draw_is_below_the_ratio():
    prior, features = on_sphere(torch.randn(3, 4)), torch.randn(3, 4)
    mixed = mixed_skills(prior, features, 0.5, uniform=torch.tensor([0.2, 0.5, 0.9]))
    torch.testing.assert_close(mixed, torch.cat([on_sphere(features[:1]), prior[1:]]))


def test_an_action_cut_at_the_box_keeps_its_gradient():
    mean = torch.tensor([0.95, 0.0], requires_grad=True)
    action = noisy_action(mean, torch.tensor([0.3, 0.1]))
    torch.testing.assert_close(action, torch.tensor([1.0, 0.1]))
    action.sum().backward()
    assert torch.equal(mean.grad, torch.ones(2))


def test_goal_variants_say_what_b_sees():
    s = torch.tensor([[0.0], [10.0]])
    following, later, order = s + 1.0, s + 2.0, torch.tensor([1, 0])

    canonical = goal_inputs("canonical", s, following, None, order)
    assert canonical.online.tolist() == canonical.target.tolist() == canonical.reached.tolist() == [[1.0], [11.0]]
    assert canonical.shuffled is None  # `reached` in the other order

    pair = goal_inputs("pair", s, following, None, order)
    assert pair.online.tolist() == pair.target.tolist() == pair.reached.tolist() == [[0.0, 1.0], [10.0, 11.0]]
    assert pair.shuffled is None

    theirs = goal_inputs("pair_compat", s, following, later, order)
    assert theirs.online.tolist() == [[0.0, 2.0], [10.0, 12.0]]  # online and target columns are different goals
    assert theirs.target.tolist() == [[1.0, 2.0], [11.0, 12.0]]
    assert theirs.reached.tolist() == reached_goal("pair_compat", s, following).tolist() == [[0.0, 1.0], [10.0, 11.0]]
    assert theirs.shuffled.tolist() == [[0.0, 10.0], [10.0, 0.0]]
    with pytest.raises(ValueError, match="later_observation"):
        goal_inputs("pair_compat", s, following, None, order)
    assert [goal_size(goal, 3) for goal in ("canonical", "pair", "pair_compat")] == [3, 6, 6]
