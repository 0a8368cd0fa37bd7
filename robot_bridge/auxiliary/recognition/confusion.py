"""Robust confusion matrix and the direction in which its spectral norm grows (arXiv 2501.13273)."""

from __future__ import annotations

import torch
from torch import Tensor

LOWEST, HIGHEST = 0.01, 2.01
"""Range that the weights are scaled to (the authors' code)."""


def confusion_matrix(predicted: Tensor, labels: Tensor, classes: int) -> Tensor:
    """C_ij = share of class j's samples that are predicted as i; the diagonal is 0.

    The authors count samples, which is the same up to a factor where classes are equally frequent, and no singular vector depends on it.

    Args:
        predicted: classes (N,).
        labels: true classes (N,).
        classes: number of classes.

    Returns:
        (classes, classes) float32; columns of classes without samples are 0.
    """
    matrix = torch.zeros(classes, classes)
    wrong = predicted != labels
    matrix.index_put_((predicted[wrong], labels[wrong]), torch.ones(int(wrong.sum())), accumulate=True)
    return matrix / torch.bincount(labels, minlength=classes).clamp_min(1)


def spectral_weights(matrix: Tensor) -> Tensor | None:
    """G = u_1 v_1^T = d||C||_2 / dC, scaled from its smallest and largest entry to [0.01, 2.01].

    Returns:
        (classes, classes), or None where nothing is confused: then there is no direction, and the penalty is left out.
    """
    if not bool((matrix > 0).any()):
        return None
    left, _, right = torch.linalg.svd(matrix)
    direction = torch.outer(left[:, 0], right[0])
    spread = direction.max() - direction.min()
    return LOWEST + (direction - direction.min()) / spread * (HIGHEST - LOWEST)


def lowered_true_logit(logits: Tensor, labels: Tensor, margin: float) -> Tensor:
    """Logits (N, C) with z_y - margin |z_y| in place of the true class's: the margin gamma of the bound.

    The authors' z_y - margin z_y would raise a negative logit.
    """
    true = logits.gather(1, labels[:, None])
    return logits.scatter(1, labels[:, None], true - margin * true.abs())
