"""Cutting a demonstration into segments where its end effector stops (STRAP, arXiv 2412.15182; thresholds of the released code)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.data.episode import DatasetError, Episode
from rl_core.strap.sdtw import RetrievalError

END_EFFECTOR = ("eef_pos", "ee_pos")
"""Channels that hold the end effector's position, metres; the first that is there is taken."""


@dataclass(frozen=True, kw_only=True)
class Stops:
    """What counts as a stop, and how short a segment may be.

    Attributes:
        threshold: v_t = sum over x, y, z of |p_(t+1) - p_t|, metres a step, below which step t is a stop. The paper's value assumes
            LIBERO's 20 Hz and step sizes.
        percentile: 0..100; a stop is below this percentile of the demonstration's own v_t instead. For other robots and rates.
        min_length: frames; a shorter segment is glued to the next one, the last one to that before it.
    """

    threshold: float = 0.005
    percentile: float | None = None
    min_length: int = 20

    def __post_init__(self) -> None:
        if not self.threshold > 0 or self.min_length < 1:
            raise RetrievalError(f"threshold {self.threshold}, min_length {self.min_length}; valid: above 0 m, 1 frame or more")
        if self.percentile is not None and not 0 <= self.percentile <= 100:
            raise RetrievalError(f"percentile {self.percentile}, valid: 0..100")


def slice_path(positions: NDArray[Any], stops: Stops) -> list[tuple[int, int]]:
    """Segments (start, stop), stop exclusive, of a path of `positions` (T, 3) metres: all its frames, in order, each once.

    A path shorter than `stops.min_length` is one segment.
    """
    path = np.asarray(positions, np.float64)
    speeds = np.abs(np.diff(path, axis=0)).sum(axis=1)
    threshold = stops.threshold if stops.percentile is None or not len(speeds) else float(np.percentile(speeds, stops.percentile))
    cuts = [0, *(np.flatnonzero(speeds < threshold) + 1).tolist(), len(path)]
    merged: list[tuple[int, int]] = []
    start = 0
    for stop in cuts[1:]:
        if stop - start >= stops.min_length:
            merged.append((start, stop))
            start = stop
    if start < len(path):  # what is left is too short for a segment of its own
        merged[-1:] = [(merged[-1][0] if merged else 0, len(path))]
    return merged


def slice_episode(episode: Episode, stops: Stops) -> list[tuple[int, int]]:
    """`slice_path` of the end effector over the episode's T steps (the observation after the last action belongs to none).

    Raises:
        DatasetError: no channel says where the end effector is.
    """
    return slice_path(end_effector(episode)[: len(episode)], stops)


def end_effector(episode: Episode) -> NDArray[Any]:
    """(T + 1, 3) position of the end effector, metres. Raises DatasetError where no channel says it."""
    for name in END_EFFECTOR:
        if name in episode.observations:
            return np.asarray(episode.observations[name])[:, :3]
    raise DatasetError(
        f"episode {episode.uuid}: no end effector; valid channels: {list(END_EFFECTOR)}, found {sorted(episode.observations)}"
    )
