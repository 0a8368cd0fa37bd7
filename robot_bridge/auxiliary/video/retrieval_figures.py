"""How well sentences find their clips: recall at k, ranks, and how often a clip is told from its twin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_bridge.auxiliary.video.clips import ClipData


def retrieval_figures(similarity: NDArray[np.float32], data: ClipData) -> dict[str, float]:
    """Figures of a search with every clip's first sentence among all clips; rates are 0..1.

    `r1`, `r5`: a clip of the sentence's meaning is among the first 1 or 5. `r1_ordered`, `r5_ordered`: of sentences whose clip differs from
    another one in the order of events alone; `r1_other`: of the rest. `twins`: the clip is before all others of its group, of ordered clips
    (chance: 0.5). `median_rank`, from 1.

    Args:
        similarity: (n, n), row = sentence, column = clip.
        data: the clips.
    """
    meanings = np.unique(data.meanings, return_inverse=True)[1]
    right = meanings[:, None] == meanings[None]
    best = np.where(right, similarity, -np.inf).max(axis=1)
    ranks = 1 + (np.where(right, -np.inf, similarity) >= best[:, None]).sum(axis=1)
    figures = {"r1": _share(ranks <= 1), "r5": _share(ranks <= 5), "median_rank": float(np.median(ranks))}
    if data.ordered.any():
        others = (data.groups[:, None] == data.groups[None]) & ~right
        before = np.where(others, similarity, -np.inf).max(axis=1) < best
        figures |= {"r1_ordered": _share(ranks[data.ordered] <= 1), "r5_ordered": _share(ranks[data.ordered] <= 5)}
        figures |= {"twins": _share(before[data.ordered])}
        if not data.ordered.all():
            figures["r1_other"] = _share(ranks[~data.ordered] <= 1)
    return figures


def _share(values: NDArray[np.bool_]) -> float:
    return float(values.mean())
