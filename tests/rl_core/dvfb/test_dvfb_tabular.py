"""The losses against a grid whose successor measure is known in closed form (figures of the specification in the comments)."""

import pytest
import torch

from rl_core.dvfb.inference import weighted_skill
from rl_core.dvfb.losses import orthonormality_error
from tests.rl_core.dvfb.tabular import CELLS, SIDE, Tables, best_values, greedy, train, true_measure, values

EVERYWHERE = torch.arange(CELLS)
UNIFORM = torch.full((CELLS, 4), 0.25)
FAST = {"lr": 2e-2, "tau": 0.1, "steps": 800}


def learned_and_true(d: int, **options) -> tuple[torch.Tensor, torch.Tensor, Tables]:
    tables = train(d=d, sampled=EVERYWHERE, conditioned=False, **options)
    return tables.f[0].reshape(-1, d) @ tables.b.T / CELLS, true_measure(UNIFORM), tables


def correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1])


def zero_shot(tables: Tables, starts: torch.Tensor, goals: list[int], *, of_another: int = 0) -> torch.Tensor:
    """Return over the best one's, for each goal, of the policy of the goal's z (or of the z of a goal `of_another` further)."""
    ratios = []
    for goal in goals:
        asked = (goal + of_another) % CELLS
        reward = torch.zeros(CELLS)
        reward[asked] = 1.0
        z = weighted_skill(tables.b, reward, least=1)
        torch.testing.assert_close(z, tables.skills[asked])  # the code that F was trained for is what inference gives
        move = torch.einsum("sad,d->sa", tables.f[asked], z).argmax(-1)
        ratios.append(values(greedy(move), goal)[starts].mean() / best_values(goal)[starts].mean())
    return torch.stack(ratios)


def test_full_rank_learns_the_successor_measure():
    learned, true, tables = learned_and_true(CELLS, norm_b=False, **FAST)
    assert correlation(learned, true) >= 0.98  # 1.00
    assert (learned - true).norm() / true.norm() < 0.05  # 0.016: the scale too, not only the shape
    assert orthonormality_error(tables.b) < 0.05  # 0.004


@pytest.mark.parametrize("norm_b", [False, True])
def test_low_rank_keeps_most_of_the_successor_measure(norm_b):
    learned, true, tables = learned_and_true(8, norm_b=norm_b, lr=1e-2, tau=0.05, steps=1200)
    assert correlation(learned, true) >= 0.85  # 0.91, on the sphere 0.89
    corner = correlation(learned[:, 0], true[:, 0])
    assert corner >= 0.85  # values of the reward in a corner: 0.96, on the sphere 0.90
    assert orthonormality_error(tables.b) < 0.15


def test_without_orthonormality_b_is_free_to_grow():
    learned, true, tables = learned_and_true(CELLS, norm_b=False, ortho=0.0, **FAST)
    assert correlation(learned, true) >= 0.98
    assert orthonormality_error(tables.b) > 1.0  # about 5


def test_every_goal_is_reached_zero_shot():
    tables = train(d=CELLS, sampled=EVERYWHERE, conditioned=True, norm_b=False, lr=2e-2, tau=0.1, steps=600)
    goals = list(range(CELLS))
    assert zero_shot(tables, EVERYWHERE, goals).mean() >= 0.95  # 1.00
    assert zero_shot(tables, EVERYWHERE, goals, of_another=7).mean() < 0.1  # 0.01: it is z that decides
    chance = torch.stack([values(UNIFORM, goal).mean() / best_values(goal).mean() for goal in goals]).mean()
    assert chance < 0.1  # 0.07


def test_low_rank_reaches_most_goals_zero_shot():
    tables = train(d=8, sampled=EVERYWHERE, conditioned=True, norm_b=True, lr=1e-2, tau=0.05, steps=1200)
    assert zero_shot(tables, EVERYWHERE, list(range(CELLS))).mean() >= 0.85  # 0.96


def test_goals_outside_of_the_data_are_not_reached():
    """What the paper claims of exploration: the same method, the same start, and only what was visited can be asked for."""
    corner = torch.tensor([cell for cell in range(CELLS) if cell % SIDE + cell // SIDE <= SIDE - 1])
    unseen = [cell for cell in range(CELLS) if cell % SIDE + cell // SIDE > SIDE]
    tables = train(d=CELLS, sampled=corner, conditioned=True, norm_b=False, lr=2e-2, tau=0.1, steps=600)
    assert zero_shot(tables, corner, corner.tolist()).mean() >= 0.9  # 1.00
    assert zero_shot(tables, corner, unseen).mean() <= 0.2  # 0.00
