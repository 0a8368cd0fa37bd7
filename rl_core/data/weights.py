"""Episode weights: `weights.json` {uuid: weight} says how likely an episode is to be drawn."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rl_core.data.episode import Dataset, DatasetError


def read_weights(path: str | Path) -> dict[str, float]:
    """Reads `weights.json`.

    Raises:
        DatasetError: not a JSON object of numbers that are finite and not negative.
    """
    try:
        data = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path}: not readable: {error}") from error
    if not isinstance(data, dict):
        raise DatasetError(f"{path}: found {type(data).__name__}, valid: an object {{uuid: weight}}")
    for uuid, weight in data.items():
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not math.isfinite(weight) or weight < 0:
            raise DatasetError(f"{path}: weight of {uuid} is {weight!r}, valid: a finite number, 0 or more")
    return {uuid: float(weight) for uuid, weight in data.items()}


def episode_weights(dataset: Dataset, weights: Mapping[str, float] | None) -> NDArray[np.float64]:
    """(episodes,) weights in the dataset's order; all 1 for None. Weights of episodes that aren't there are ignored.

    Raises:
        DatasetError: an episode without a weight, or all weights are 0.
    """
    if weights is None:
        return np.ones(len(dataset))
    missing = [episode.uuid for episode in dataset.episodes if episode.uuid not in weights]
    if missing:
        raise DatasetError(f"{len(missing)} of {len(dataset)} episodes have no weight, e.g. {missing[0]}; {len(weights)} weights given")
    values = np.array([weights[episode.uuid] for episode in dataset.episodes], np.float64)
    if not values.sum() > 0:
        raise DatasetError(f"the weights of all {len(dataset)} episodes are 0; valid: at least one above 0")
    return values


def transition_weights(dataset: Dataset, weights: Mapping[str, float] | None) -> NDArray[np.float64]:
    """(steps,) weight of each transition in `ReplayBuffer.from_dataset`'s order: that of its episode."""
    return np.repeat(episode_weights(dataset, weights), [len(episode) for episode in dataset.episodes])
