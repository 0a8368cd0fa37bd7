"""Which share of noise tells a prior's own samples from real crops best. The paper's alpha (0.01) does not carry over to small models.

Samples of the generator that is to be found later take no part in the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from robot_bridge.auxiliary.monitoring.detection import auroc
from robot_bridge.auxiliary.monitoring.manifold.criterion import Weights, step_of, terms
from robot_bridge.auxiliary.monitoring.manifold.prior import Prior
from robot_bridge.auxiliary.monitoring.manifold.scoring import OF_PRIOR, Reference, Score, scores_of_terms

ALPHAS = (0.003, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95)


@dataclass(frozen=True, kw_only=True)
class Level:
    """One share of noise: `step` of the prior's schedule, its exact `alpha`, and the AUC of every score of `OF_PRIOR`."""

    step: int
    alpha: float
    auc: dict[str, float]


def sweep(
    prior: Prior,
    own: NDArray[np.uint8],
    real: NDArray[np.uint8],
    noises: Tensor,
    weights: Weights,
    alphas: Sequence[float] = ALPHAS,
    told: Callable[[str], None] = lambda text: None,
) -> list[Level]:
    """Judges the prior's own samples against real crops at every alpha.

    Args:
        prior: the model.
        own: crops that it made (n, side, side, 3).
        real: crops of frames that it was not trained on.
        noises: of `criterion.spherical_noises`.
        weights: of the criterion.
        alphas: what is tried; each becomes the nearest step.
        told: what was found, a line a level.
    """
    found: list[Level] = []
    steps = list(dict.fromkeys(step_of(prior, alpha) for alpha in alphas))
    for step in steps:
        of_real, of_own = (terms(prior, crops, step, noises) for crops in (real, own))
        reference = Reference.of(of_real)
        true, made = (scores_of_terms(reference.standardised(each), weights) for each in (of_real, of_own))
        auc = {name: auroc(made[name].numpy(), true[name].numpy()) for name in OF_PRIOR}
        found.append(Level(step=step, alpha=float(prior.alphas[step]), auc=auc))
        told(f"{len(found)}/{len(steps)}  alpha {found[-1].alpha:.3f}  " + "  ".join(f"{name} {value:.3f}" for name, value in auc.items()))
    return found


def best_level(levels: Sequence[Level], score: Score) -> Level:
    """The level at which `score` tells most; of a baseline that asks no prior, at which the criterion does."""
    name = score if score in OF_PRIOR else "criterion"
    return max(levels, key=lambda level: level.auc[name])


def table(levels: Sequence[Level]) -> Tensor:
    """(levels, 2 + scores) float32 for a bundle: step, alpha, and the AUC in the order of `OF_PRIOR`."""
    return torch.tensor([[level.step, level.alpha, *(level.auc[name] for name in OF_PRIOR)] for level in levels])
