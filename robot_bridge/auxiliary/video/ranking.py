"""Ranking of clips by a sentence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def best(vectors: NDArray[np.float32], query: NDArray[np.float32], top: int) -> list[tuple[int, float]]:
    """(row, cosine) of the `top` most similar rows, best first; equal ones in their order.

    Args:
        vectors: (n, d) of unit length.
        query: (d,) of unit length.
        top: how many.
    """
    scores = vectors @ query
    order = np.argsort(-scores, kind="stable")[:top]
    return [(int(row), float(scores[row])) for row in order]
