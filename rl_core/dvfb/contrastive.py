"""Contrastive encoder of transitions and skills, and the entropy reward over it (after CIC, arXiv 2202.00161, as changed by DVFB's code).

The authors' encoder has one more head, which predicts phi(s') from phi(s) and the skill; neither its gradient nor its value reaches
anything else, so it is left out.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from rl_core.dvfb.config import Neighbours
from rl_core.dvfb.networks import Sizes
from rl_core.models import MLP


class ContrastiveEncoder(nn.Module):
    """Keys of transitions and queries of the skills that they belong to."""

    def __init__(self, config: Sizes, observation: int) -> None:
        super().__init__()
        hidden, d = (config.hidden, config.hidden), config.z_dim
        self.state = MLP(observation, d, hidden, activation="relu")
        self.transition = MLP(2 * d, d, hidden, activation="relu")
        self.skill = MLP(d, d, hidden, activation="relu")

    def forward(self, observation: Tensor, next_observation: Tensor, skill: Tensor) -> tuple[Tensor, Tensor]:
        """(n, S), (n, S), (n, d) -> query and key, (n, d) each, of norm 1."""
        before, after = self.state(torch.cat([observation, next_observation])).chunk(2)
        key = self.transition(torch.cat([before, after], -1))
        return functional.normalize(self.skill(skill), dim=-1), functional.normalize(key, dim=-1)


def contrastive_loss(query: Tensor, key: Tensor, *, temperature: float) -> Tensor:
    """Mean of -log [exp(q_i.k_i / T) / (sum_j exp(q_i.k_j / T) - exp(1 / T))], (n, d), (n, d) -> () [code].

    What is subtracted is the largest value the matched pair can have; log (n - 1) at the start, at least log (n - 1) - 2 for T = 1.
    """
    similar = query @ key.T / temperature
    others = (similar.exp().sum(-1) - math.exp(1.0 / temperature)).clamp(min=1e-6)
    return (others.log() - similar.diagonal()).mean()


def contrastive_entropy(query: Tensor, key: Tensor, *, neighbours: int, kind: Neighbours) -> Tensor:
    """r_ce_i = log(1 + mean over k skills of the batch of (1 - cos(k_i, q_j))), (n, d), (n, d) -> (n,) in [0, log 3].

    Args:
        query: skills, of norm 1.
        key: transitions, of norm 1.
        neighbours: k, at most n.
        kind: the k most similar skills (a particle estimate of entropy), or the k least similar ones, as the authors' code picks.
    """
    cosine, _ = (key @ query.T).topk(min(neighbours, len(query)), dim=-1, largest=kind == "nearest", sorted=False)
    return torch.log1p((1.0 - cosine).mean(-1).clamp(0.0, 2.0))
