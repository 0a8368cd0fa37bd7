"""The few-shot mixture (arXiv 2504.15470): the criterion's terms, and a classifier of image features, weighed by a random forest.

The classifier of features is the second expert: a linear probe on a few labelled frames. Its score of a frame that the forest learns from
comes from a probe that has not seen that frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from rl_core.training.seeding import numpy_generator
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from robot_bridge.auxiliary.monitoring.manifold.forest import Forest, fit_forest
from robot_bridge.auxiliary.recognition import linear_probe
from robot_bridge.auxiliary.recognition.linear_probe import LinearProbeConfig

_FOLDS = 5
_PREFIX = "forest."


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """Attributes: `forest`; `probe`, weight (2, D) and bias (2,) of the classifier of features, empty without one."""

    forest: Forest
    probe: Mapping[str, Tensor] = field(default_factory=dict)

    def probability(self, terms: Tensor, features: Tensor | None = None) -> Tensor:
        """How likely a crop was generated (n,), of its standardised terms (n, K) and, where there is a probe, its features (n, D)."""
        columns = [terms]
        if self.probe:
            assert features is not None
            columns.append(_scores(features, self.probe["weight"], self.probe["bias"])[:, None])
        return torch.from_numpy(self.forest.probability(torch.cat(columns, dim=1).numpy())).float()

    def arrays(self) -> dict[str, Tensor]:
        """For a bundle."""
        return {**{f"{_PREFIX}{name}": tensor for name, tensor in self.forest.arrays().items()}, **self.probe}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Tensor]) -> Mixture | None:
        """What `arrays` gave; None where a bundle has no forest."""
        forest = {name.removeprefix(_PREFIX): tensor for name, tensor in arrays.items() if name.startswith(_PREFIX)}
        probe = {name: arrays[name] for name in ("weight", "bias") if name in arrays}
        return cls(forest=Forest(**forest), probe=probe) if forest else None


def fit_mixture(terms: Tensor, labels: Tensor, features: Tensor | None = None, *, seed: int = 0) -> Mixture:
    """Fits both experts' weights.

    Args:
        terms: standardised (n, K).
        labels: (n,), 1 = generated.
        features: of a frozen network (n, D); None for the terms alone.
        seed: of folds and trees.

    Raises:
        AuthenticityError: fewer than 5 crops of either kind.
    """
    require_both(*torch.bincount(labels, minlength=2).tolist())
    if features is None:
        return Mixture(forest=fit_forest(terms.numpy(), labels.numpy(), seed=seed))
    fold, expert = _folds(labels, seed), torch.empty(len(labels))
    for number in range(_FOLDS):
        held = fold == number
        expert[held] = _scores(features[held], *linear_probe.fit(features[~held], labels[~held], 2, LinearProbeConfig()))
    weight, bias = linear_probe.fit(features, labels, 2, LinearProbeConfig())
    columns = torch.cat((terms, expert[:, None]), dim=1)
    return Mixture(forest=fit_forest(columns.numpy(), labels.numpy(), seed=seed), probe={"weight": weight, "bias": bias})


def require_both(real: int, generated: int) -> None:
    """Raises AuthenticityError where there are too few labelled crops of either kind."""
    if min(real, generated) < _FOLDS:
        raise AuthenticityError(f"{real} real and {generated} generated crops with a label; valid: {_FOLDS} or more of each")


def _folds(labels: Tensor, seed: int) -> Tensor:
    """(n,) the fold of each, with both kinds in every one."""
    generator, fold = numpy_generator(seed, "folds"), np.empty(len(labels), np.int64)
    for kind in (0, 1):
        rows = generator.permutation(np.flatnonzero(labels.numpy() == kind))
        fold[rows] = np.arange(len(rows)) % _FOLDS
    return torch.from_numpy(fold)


def _scores(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    logits = linear_probe.probe_logits(features, weight, bias)
    return logits[:, 1] - logits[:, 0]
