"""The last observation of an episode, where a file doesn't hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]


def end_observations(observations: Arrays, final: Arrays | None, *, terminal: bool) -> tuple[dict[str, NDArray[Any]], int]:
    """Turns T observations of T actions into one more observation than actions.

    With `final` (1, ...) the outcome of the last action is known. Without, a terminal step keeps its place, with its own
    observation repeated behind it: nothing is bootstrapped there, so the repeated row is never used as a value. A step at a
    time limit is dropped, as D4RL's `qlearning_dataset` does: what followed it isn't in the file.

    Returns:
        The observations and the number of actions that belong to them (T or T - 1).
    """
    steps = len(next(iter(observations.values())))
    if final is not None:
        return {name: np.concatenate([values, final[name]]) for name, values in observations.items()}, steps
    if terminal:
        return {name: np.concatenate([values, values[-1:]]) for name, values in observations.items()}, steps
    return dict(observations), steps - 1
