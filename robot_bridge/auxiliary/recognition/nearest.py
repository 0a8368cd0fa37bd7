"""The k nearest neighbours of many nodes, kept up to date while nodes come and go."""

from __future__ import annotations

import torch
from torch import Tensor


class NearestLists:
    """For each of `rows` nodes the (at most) k most similar others, in no order.

    Attributes:
        similarities: (rows, k); -inf marks an empty place.
        neighbours: (rows, k) indices; 0 in an empty place.

    Args:
        rows: number of lists.
        k: length of a list.
        dtype: of the similarities.
    """

    def __init__(self, rows: int, k: int, dtype: torch.dtype) -> None:
        self.similarities = torch.full((rows, k), -torch.inf, dtype=dtype)
        self.neighbours = torch.zeros(rows, k, dtype=torch.long)

    def clear(self) -> None:
        """Empties all lists."""
        self.similarities.fill_(-torch.inf)
        self.neighbours.zero_()

    def assign(self, rows: Tensor, similarities: Tensor) -> None:
        """Makes the lists of `rows` (m,) from similarities (m, candidates); candidates at -inf are none."""
        best = similarities.topk(min(self.similarities.shape[1], similarities.shape[1]), dim=1)
        width = best.values.shape[1]
        self.similarities[rows], self.neighbours[rows] = -torch.inf, 0
        self.similarities[rows, :width] = best.values
        self.neighbours[rows, :width] = torch.where(best.values > -torch.inf, best.indices, 0)

    def offer(self, node: int, similarities: Tensor) -> None:
        """Puts `node` into each of the first lists that it is similar enough for, in place of the least similar neighbour.

        Args:
            node: index of the newcomer.
            similarities: (n,), how similar it is to the owners of the first n lists; -inf: not at all.
        """
        least = self.similarities[: len(similarities)].min(dim=1)
        rows = torch.nonzero(similarities > least.values)[:, 0]
        self.similarities[rows, least.indices[rows]] = similarities[rows]
        self.neighbours[rows, least.indices[rows]] = node

    def holding(self, node: int) -> Tensor:
        """Rows (m,) that have `node` in their list."""
        return torch.nonzero(((self.neighbours == node) & (self.similarities > -torch.inf)).any(dim=1))[:, 0]
