"""Bipartite soft matching of tokens (ToMe, arXiv 2210.09461), with any number of CLS tokens in front, as TempMe uses it (arXiv 2409.01156).

Tokens at even places of the sequence are set A, those at odd places set B; CLS tokens are in neither. Each A token finds its most similar
B token; the `removed` A tokens that are most similar to theirs merge into them. A merged token is the mean of what it stands for, and its
size says for how many original tokens it stands. The phase, whether the first patch is in A or in B, follows from the number of CLS tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True, kw_only=True)
class Matching:
    """Which tokens merge into which, as places in the sequence.

    Attributes:
        source: (B, r) tokens that go.
        target: (B, r) tokens that they become part of.
        kept: (B, T - r) tokens that stay, in their order.
    """

    source: Tensor
    target: Tensor
    kept: Tensor


def removable(tokens: int, cls: int, wanted: int) -> int:
    """How many of `tokens`, of which `cls` are CLS tokens, one merge removes: `wanted`, at most half of the patches."""
    return max(min(wanted, (tokens - cls) // 2), 0)


def match(metric: Tensor, cls: int, removed: int) -> Matching:
    """Finds what merges.

    Args:
        metric: (B, T, m) what tokens are compared by; only its direction counts.
        cls: CLS tokens, which lie in front and never merge.
        removed: r, see `removable`.
    """
    count = metric.shape[1]
    places = torch.arange(cls, count, device=metric.device)
    a, b = places[places % 2 == 0], places[places % 2 == 1]
    unit = F.normalize(metric, dim=-1)
    best, partner = (unit[:, a] @ unit[:, b].transpose(1, 2)).max(dim=-1)
    chosen = best.argsort(dim=-1, descending=True)[:, :removed]
    source, target = a[chosen], b[partner.gather(1, chosen)]
    stays = torch.ones(metric.shape[:2], dtype=torch.bool, device=metric.device).scatter(1, source, False)
    return Matching(source=source, target=target, kept=stays.nonzero()[:, 1].view(len(metric), count - removed))


def merge(x: Tensor, size: Tensor, matching: Matching) -> tuple[Tensor, Tensor]:
    """Tokens (B, T - r, w) and their sizes (B, T - r, 1), those that stay in their order.

        x_j <- sum_i size_i x_i / sum_i size_i,   size_j <- sum_i size_i    over j and all i that merge into it

    Args:
        x: (B, T, w) tokens.
        size: (B, T, 1) for how many original tokens each stands.
        matching: of `match`.
    """
    weighted = _gathered_into(x * size, matching)  # sources are read from what was there before anything is added
    total = _gathered_into(size, matching)
    return _rows(weighted, matching.kept) / _rows(total, matching.kept), _rows(total, matching.kept)


def _gathered_into(values: Tensor, matching: Matching) -> Tensor:
    places = matching.target[..., None].expand(-1, -1, values.shape[-1])
    return values.scatter_add(1, places, _rows(values, matching.source))


def _rows(values: Tensor, places: Tensor) -> Tensor:
    return values.gather(1, places[..., None].expand(-1, -1, values.shape[-1]))
