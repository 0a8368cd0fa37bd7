"""The statistics LeRobot keeps of every feature, for an episode and for the dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
SAMPLED_PICTURES = 100
"""Pictures of an episode that its statistics are taken from, evenly spaced."""

Stats = dict[str, NDArray[np.float64]]


def number_stats(values: NDArray[Any]) -> Stats:
    """Statistics (size,) of numbers (T, size), and their count (1,)."""
    values = values.astype(np.float64)
    extremes = {"min": values.min(axis=0), "max": values.max(axis=0)}
    quantiles = dict(zip(QUANTILES, np.quantile(values, list(QUANTILES.values()), axis=0), strict=True))
    return {**extremes, "mean": values.mean(axis=0), "std": values.std(axis=0), "count": np.array([len(values)]), **quantiles}


def picture_stats(pictures: NDArray[np.uint8]) -> Stats:
    """Statistics (3, 1, 1), one a colour, of pictures (T, height, width, 3), in [0, 1]; the count (1,) is one of pictures."""
    chosen = pictures[np.unique(np.linspace(0, len(pictures) - 1, SAMPLED_PICTURES).round().astype(int))]
    # of 256 values each, all statistics follow from how often they appear
    shares = np.stack([np.bincount(chosen[..., colour].ravel(), minlength=256) for colour in range(3)]) / chosen[..., 0].size
    levels, below = np.arange(256) / 255, np.cumsum(shares, axis=1)
    mean = shares @ levels
    stats = {
        "min": levels[np.argmax(shares > 0, axis=1)],
        "max": levels[255 - np.argmax(shares[:, ::-1] > 0, axis=1)],
        "mean": mean,
        "std": np.sqrt((shares * (levels - mean[:, None]) ** 2).sum(axis=1)),
        **{name: levels[np.argmax(below >= share, axis=1)] for name, share in QUANTILES.items()},
    }
    return {name: values.reshape(3, 1, 1) for name, values in stats.items()} | {"count": np.array([len(chosen)])}


def aggregate(episodes: Sequence[Mapping[str, Stats]]) -> dict[str, Stats]:
    """Statistics of the whole: exact but for quantiles, which are, as in LeRobot, the mean of the episodes'."""
    return {key: _aggregate([stats[key] for stats in episodes]) for key in episodes[0]}


def _aggregate(parts: Sequence[Stats]) -> Stats:
    count = np.array([part["count"][0] for part in parts])
    weights = count / count.sum()
    stacked = {name: np.stack([part[name] for part in parts]) for name in parts[0] if name != "count"}
    total = {name: np.tensordot(weights, values, axes=1) for name, values in stacked.items()}
    variance = np.tensordot(weights, stacked["std"] ** 2 + (stacked["mean"] - total["mean"]) ** 2, axes=1)
    extremes = {"min": stacked["min"].min(axis=0), "max": stacked["max"].max(axis=0)}
    return total | extremes | {"std": np.sqrt(variance), "count": count.sum(keepdims=True)}
