"""Behaviour cloning of the better half: the plainest way to use rewards, and the bar an offline RL method has to clear."""

from __future__ import annotations

import dataclasses

from rl_core.baselines.bc import BCLearner
from rl_core.data.episode import Dataset, DatasetError


def best_half(dataset: Dataset) -> Dataset:
    """The half (rounded up) of the episodes with the highest undiscounted return, in the dataset's order; ties keep the earlier.

    Raises:
        DatasetError: no episodes.
    """
    if not dataset.episodes:
        raise DatasetError(f"{dataset.source or 'dataset'}: no episodes, valid: at least one")
    ranked = sorted(range(len(dataset)), key=lambda index: -dataset.episodes[index].episode_return)
    kept = sorted(ranked[: (len(ranked) + 1) // 2])
    return dataclasses.replace(dataset, episodes=tuple(dataset.episodes[index] for index in kept))


class BestHalfBCLearner(BCLearner):
    """BC whose data were chosen by `best_half`; only the name in the bundle differs."""

    method = "bc_best_half"
