"""How far inputs have moved from the training data, layer by layer (ILC's sensitivity analysis, arXiv 2504.05461)."""

from __future__ import annotations

import torch
from torch import Tensor

from robot_bridge.auxiliary.recognition.errors import RecognitionError


def total_variation(known: Tensor, shifted: Tensor, bins: int = 50) -> float:
    """Mean over features of 1/2 sum_b |p_b - q_b|, p and q histograms over the range that both sets span [code].

    Args:
        known: features (N, D) of the training distribution.
        shifted: features (M, D) of another one.
        bins: of each histogram.

    Returns:
        In [0, 1]; 0 where the histograms agree.

    Raises:
        RecognitionError: no samples, or another number of features.
    """
    _check(known, shifted)
    lowest = torch.minimum(known.amin(dim=0), shifted.amin(dim=0))
    highest = torch.maximum(known.amax(dim=0), shifted.amax(dim=0))
    width = torch.where(highest > lowest, highest - lowest, 1.0)
    return float(0.5 * (_histograms(known, lowest, width, bins) - _histograms(shifted, lowest, width, bins)).abs().sum(dim=1).mean())


def sensitivity(known: Tensor, shifted: Tensor) -> float:
    """Mean distance from `shifted` to `known` over the mean distance within `known`, minus 1 [review]; 0 = as near as the data themselves.

    Raises:
        RecognitionError: fewer than two known samples, none shifted, or another number of features.
    """
    _check(known, shifted)
    if len(known) < 2:
        raise RecognitionError(f"{len(known)} known samples; valid: 2 or more, which have a distance")
    within = torch.pdist(known).mean().clamp_min(torch.finfo(known.dtype).tiny)
    return float(torch.cdist(shifted, known).mean() / within - 1)


def _histograms(features: Tensor, lowest: Tensor, width: Tensor, bins: int) -> Tensor:
    """Shares (D, bins)."""
    place = ((features - lowest) / width * bins).long().clamp(0, bins - 1).T
    counts = features.new_zeros(features.shape[1], bins)
    return counts.scatter_add(1, place, torch.ones_like(place, dtype=features.dtype)) / len(features)


def _check(known: Tensor, shifted: Tensor) -> None:
    if not len(known) or not len(shifted) or known.shape[1] != shifted.shape[1]:
        raise RecognitionError(f"features {tuple(known.shape)} and {tuple(shifted.shape)}; valid: both with samples, equally many features")
