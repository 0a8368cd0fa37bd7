"""A random forest for two classes, as plain arrays: what the few-shot mixture decides with (no pickle, no further package).

CART with Gini impurity, a bootstrap sample a tree and sqrt(D) features tried a split, as in the classifier of the paper (100 trees).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.training.seeding import numpy_generator
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError

_LEAF = -1
_SMALLEST = 2
"""Samples of a leaf, at least."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Forest:
    """K trees of up to N nodes; node 0 is the root.

    Attributes:
        feature: (K, N) int64, which feature a node asks for; -1 in a leaf.
        threshold: (K, N) float64; a sample goes left where its feature is at most that.
        children: (K, N, 2) int64, left and right.
        share: (K, N) float64, share of class 1 among the samples that came to a node.
    """

    feature: Tensor
    threshold: Tensor
    children: Tensor
    share: Tensor

    def arrays(self) -> dict[str, Tensor]:
        """For a bundle; `Forest(**arrays)` gives it back."""
        return dict(vars(self))

    def probability(self, samples: NDArray[np.floating]) -> NDArray[np.float64]:
        """Share of class 1 (n,) in the leaves of samples (n, D), mean over trees.

        Raises:
            AuthenticityError: fewer features than the trees ask for.
        """
        feature, threshold, children, share = (tensor.numpy() for tensor in vars(self).values())
        if samples.shape[1] <= feature.max():
            raise AuthenticityError(f"samples of {samples.shape[1]} features, valid: {feature.max() + 1} or more")
        trees, rows = np.arange(len(feature))[:, None], np.arange(len(samples))[None, :]
        node = np.zeros((len(feature), len(samples)), np.int64)
        while (inside := feature[trees, node] != _LEAF).any():
            right = samples[rows, np.maximum(feature[trees, node], 0)] > threshold[trees, node]
            node = np.where(inside, children[trees, node, right.astype(np.int64)], node)
        return share[trees, node].mean(axis=0)


def fit_forest(samples: NDArray[np.floating], labels: NDArray[np.integer], *, trees: int = 100, depth: int = 8, seed: int = 0) -> Forest:
    """Grows a forest.

    Args:
        samples: (n, D), finite.
        labels: (n,), 0 or 1, both present.
        trees: K.
        depth: splits from root to leaf, at most.
        seed: of bootstrap samples and features.

    Raises:
        AuthenticityError: one class only, or numbers that are not finite.
    """
    if len(np.unique(labels)) != 2 or not np.isfinite(samples).all():
        raise AuthenticityError(f"{len(samples)} samples of classes {np.unique(labels).tolist()}; valid: finite ones of classes 0 and 1")
    generator, grown = numpy_generator(seed, "forest"), []
    for _ in range(trees):
        rows = generator.integers(len(samples), size=len(samples))
        grown.append(_Tree(np.asarray(samples[rows], np.float64), np.asarray(labels[rows], np.float64), depth, generator))
    size = max(len(tree.nodes) for tree in grown)
    padded = np.zeros((trees, size, 5))
    padded[:, :, 0] = _LEAF
    for index, tree in enumerate(grown):
        padded[index, : len(tree.nodes)] = tree.nodes
    whole = torch.from_numpy(padded)
    return Forest(
        feature=whole[..., 0].long(), threshold=whole[..., 1].clone(), children=whole[..., 2:4].long(), share=whole[..., 4].clone()
    )


class _Tree:
    """Rows (feature, threshold, left, right, share), in the order in which they were grown."""

    def __init__(self, samples: NDArray[np.float64], labels: NDArray[np.float64], depth: int, generator: np.random.Generator) -> None:
        self.nodes: list[list[float]] = []
        self._tried = max(1, round(samples.shape[1] ** 0.5))
        self._grow(samples, labels, depth, generator)

    def _grow(self, samples: NDArray[np.float64], labels: NDArray[np.float64], depth: int, generator: np.random.Generator) -> int:
        place = len(self.nodes)
        self.nodes.append([_LEAF, 0.0, 0.0, 0.0, float(labels.mean())])
        if depth == 0 or labels.min() == labels.max():
            return place
        features = generator.permutation(samples.shape[1])[: self._tried]
        gain, threshold, feature = max((*_best_split(samples[:, each], labels), int(each)) for each in features)
        if gain <= 0:
            return place
        left = samples[:, feature] <= threshold
        below = self._grow(samples[left], labels[left], depth - 1, generator)
        above = self._grow(samples[~left], labels[~left], depth - 1, generator)
        self.nodes[place][:4] = [feature, threshold, below, above]
        return place


def _best_split(values: NDArray[np.float64], labels: NDArray[np.float64]) -> tuple[float, float]:
    """Fall of n times the Gini impurity, and the threshold, of a feature's best split; (0, 0) where there is none."""
    order = np.argsort(values, kind="stable")
    values, labels = values[order], labels[order]
    below = np.arange(1, len(values))
    ones = np.cumsum(labels)[:-1]
    above, others = len(values) - below, labels.sum() - ones
    allowed = (values[1:] > values[:-1]) & (below >= _SMALLEST) & (above >= _SMALLEST)
    if not allowed.any():
        return 0.0, 0.0
    # n p (1 - p) of both sides
    impurity = np.where(allowed, ones * (below - ones) / below + others * (above - others) / above, np.inf)
    best, share = int(impurity.argmin()), labels.mean()
    middle = (values[best] + values[best + 1]) / 2
    threshold = middle if middle < values[best + 1] else values[best]  # between neighbouring numbers there is none
    return float(len(labels) * share * (1 - share) - impurity[best]), float(threshold)
