"""A 5x5 grid whose successor measure is known, and F and B as tables trained by DVFB's own losses on all transitions at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rl_core.dvfb.losses import fb_loss, measure_target, orthonormality_loss
from rl_core.dvfb.skills import on_sphere

SIDE, MOVES, GAMMA = 5, ((1, 0), (-1, 0), (0, 1), (0, -1)), 0.9
CELLS = SIDE * SIDE


def cell(x: int, y: int) -> int:
    return y * SIDE + x


def grid() -> Tensor:
    """(25, 4) the cell after each move; a wall leaves the cell as it is."""
    after = torch.empty(CELLS, len(MOVES), dtype=torch.long)
    for x in range(SIDE):
        for y in range(SIDE):
            for move, (dx, dy) in enumerate(MOVES):
                after[cell(x, y), move] = cell(min(max(x + dx, 0), SIDE - 1), min(max(y + dy, 0), SIDE - 1))
    return after


AFTER = grid()


def transitions(policy: Tensor) -> Tensor:
    """(25, 25) of a policy (25, 4)."""
    moved = torch.nn.functional.one_hot(AFTER, CELLS).float()
    return (policy.unsqueeze(-1) * moved).sum(1)


def true_measure(policy: Tensor) -> Tensor:
    """(100, 25): sum_t gamma^t P(s_{t+1} = x | s, a, policy)."""
    first = torch.nn.functional.one_hot(AFTER.reshape(-1), CELLS).float()
    return first @ torch.linalg.inv(torch.eye(CELLS) - GAMMA * transitions(policy))


def values(policy: Tensor, goal: int) -> Tensor:
    """(25,) discounted return of 1[s' = goal]."""
    step = transitions(policy)
    return torch.linalg.inv(torch.eye(CELLS) - GAMMA * step) @ step[:, goal]


def greedy(move: Tensor) -> Tensor:
    """(25,) moves -> policy (25, 4)."""
    return torch.nn.functional.one_hot(move, len(MOVES)).float()


def best_values(goal: int) -> Tensor:
    """(25,) of the best policy."""
    value = torch.zeros(CELLS)
    reward = (AFTER == goal).float()
    for _ in range(300):
        value = (reward + GAMMA * value[AFTER]).amax(1)
    return value


@dataclass(frozen=True, kw_only=True)
class Tables:
    """F (Z, 25, 4, d), one for each of Z skills, B (25, d), skills (Z, d)."""

    f: Tensor
    b: Tensor
    skills: Tensor


def train(
    *, d: int, steps: int, sampled: Tensor, conditioned: bool, norm_b: bool, ortho: float = 1.0, lr: float = 3e-3, tau: float = 0.02
) -> Tables:
    """F and B from all moves in the `sampled` cells, whose successors are the goals.

    Args:
        conditioned: one F for each cell's code z_g = B(g) on the sphere, with the best next move for it; else one F of the uniform policy.
        norm_b: B on the sphere.
    """
    generator = torch.Generator().manual_seed(0)
    skills = CELLS if conditioned else 1
    f = (0.1 * torch.randn(skills, CELLS, len(MOVES), d, generator=generator)).requires_grad_()
    table = torch.randn(CELLS, d, generator=generator).requires_grad_()
    optimizer = torch.optim.Adam([f, table], lr=lr, fused=True)
    f_target, b_target = f.detach().clone(), table.detach().clone()
    next_cells = AFTER[sampled].reshape(-1)  # row (s, a) -> s'
    everywhere = len(sampled) == CELLS  # then each cell is as often a successor as any other, and once among the goals is enough
    goals = torch.arange(CELLS) if everywhere else next_cells
    own = torch.nn.functional.one_hot(next_cells, CELLS).float() if everywhere else torch.eye(len(goals))
    own, identity = own.repeat(skills, 1), torch.eye(len(goals))
    discount = torch.full((len(own),), GAMMA)

    def backward(rows_of_b: Tensor) -> Tensor:
        return on_sphere(rows_of_b) if norm_b else rows_of_b

    for _ in range(steps):
        with torch.no_grad():
            codes = on_sphere(table) if conditioned else torch.zeros(1, d)
            next_f = f_target[:, next_cells]  # (Z, rows, 4, d)
            if conditioned:
                move = torch.einsum("zrad,zd->zra", next_f, codes).argmax(-1)
                next_f = next_f.gather(2, move[..., None, None].expand(-1, -1, 1, d)).squeeze(2)
            else:
                next_f = next_f.mean(2)
            target = measure_target(next_f.reshape(1, -1, d), backward(b_target[goals]), discount)
        b = backward(table[goals])
        loss = fb_loss(f[:, sampled].reshape(1, -1, d), b, target, own)
        if ortho:
            loss = loss + ortho * orthonormality_loss(b, identity)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            f_target.lerp_(f, tau)
            b_target.lerp_(table, tau)
    b = backward(table).detach()
    return Tables(f=f.detach(), b=b, skills=on_sphere(table.detach()) if conditioned else torch.zeros(1, d))
