"""Retrieval without sub-trajectories, to compare with: single frames (D-S), and whole trajectories by DTW (D-T)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from dtaidistance import dtw_ndim
from numpy.typing import NDArray

from rl_core.strap.search import Trajectories
from rl_core.strap.selection import Piece


def nearest_runs(target: Sequence[NDArray[Any]], prior: Trajectories, frames: int) -> list[Piece]:
    """The `frames` prior frames nearest to any target frame; neighbours among them are one piece.

    Args:
        target: features (T, d) of each demonstration.
        prior: the corpus.
        frames: how many to retrieve; all where there are fewer.

    Returns:
        Pieces in the order of the corpus; `cost` is the mean distance.
    """
    wanted = torch.from_numpy(np.concatenate(target).astype(np.float32))
    found = []
    for number in range(len(prior.lengths)):
        rows = torch.from_numpy(prior.block(number, number + 1).astype(np.float32))
        found.append(torch.cdist(rows, wanted).min(dim=1).values.numpy())
    nearest = np.concatenate(found)
    chosen = np.zeros(len(nearest), bool)
    chosen[np.argsort(nearest, kind="stable")[:frames]] = True
    pieces = []
    for number, (distances, kept) in enumerate(zip(found, np.split(chosen, np.cumsum(prior.lengths)[:-1]), strict=True)):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], kept.astype(np.int8), [0]])))
        for start, stop in edges.reshape(-1, 2).tolist():
            pieces.append(Piece(trajectory=number, start=start, stop=stop, cost=float(distances[start:stop].mean())))
    return pieces


def full_trajectories(target: Sequence[NDArray[Any]], prior: Trajectories, frames: int) -> list[Piece]:
    """Whole prior trajectories, nearest first, until they have `frames` frames (one at least).

    A trajectory's cost is its DTW distance to the nearest target demonstration, over the square root of the frames of both: by
    dtaidistance, which aligns all frames of both with the textbook's steps (1, 1), (1, 0), (0, 1) and sums squares.
    """
    wanted = [np.ascontiguousarray(features, np.float64) for features in target]
    costs = []
    for number in range(len(prior.lengths)):
        rows = prior.block(number, number + 1).astype(np.float64)
        best = math.inf
        for features in wanted:
            norm = math.sqrt(len(rows) + len(features))
            most = best * norm if math.isfinite(best) else None
            best = min(best, dtw_ndim.distance(features, rows, max_dist=most, use_c=True) / norm)
        costs.append(best)
    pieces: list[Piece] = []
    for number in np.argsort(costs, kind="stable").tolist():
        if sum(piece.stop for piece in pieces) >= max(frames, 1):
            break
        pieces.append(Piece(trajectory=number, start=0, stop=int(prior.lengths[number]), cost=costs[number]))
    return pieces
