"""One number a crop, higher = generated: the criterion, one of its terms, a baseline, or the few-shot mixture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from robot_bridge.auxiliary.monitoring.manifold import baselines
from robot_bridge.auxiliary.monitoring.manifold.criterion import TERMS, Weights, terms
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from robot_bridge.auxiliary.monitoring.manifold.few_shot import Mixture
from robot_bridge.auxiliary.monitoring.manifold.prior import Prior

Score = Literal["criterion", "kappa", "gradient", "bias", "reconstruction", "rigid", "contrast", "slope"]
OF_PRIOR = ("criterion", *TERMS)
"""Scores that a prior is asked for, at a step of its noise schedule."""
_SIGNS = {"kappa": 1.0, "gradient": -1.0, "bias": 1.0, "reconstruction": -1.0}


@dataclass(frozen=True, kw_only=True, eq=False)
class Reference:
    """Mean and deviation of each term over real crops, name -> number; what is given out is standardised with them."""

    mean: Mapping[str, float]
    deviation: Mapping[str, float]

    @classmethod
    def of(cls, found: Mapping[str, Tensor]) -> Reference:
        """Of terms (n,) of real crops."""
        mean = {name: float(values.double().mean()) for name, values in found.items()}
        deviation = {name: max(float(values.double().std(correction=0)), 1e-9) for name, values in found.items()}
        return cls(mean=mean, deviation=deviation)

    def standardised(self, found: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Terms in deviations of real crops."""
        return {name: (values - self.mean[name]) / self.deviation[name] for name, values in found.items()}


def scores_of_terms(standardised: Mapping[str, Tensor], weights: Weights) -> dict[str, Tensor]:
    """Every score of `OF_PRIOR` (n,), of standardised terms."""
    combined = weights.combine(standardised["kappa"], standardised["gradient"], standardised["bias"])
    return {"criterion": combined, **{name: sign * standardised[name] for name, sign in _SIGNS.items()}}


@cache
def frozen_features() -> baselines.Features:
    """Vectors (n, 1280) of EfficientNet-Lite0's pooled head, for RIGID and the few-shot mixture.

    Raises:
        AuthenticityError: the extra `vlm` is not installed.
    """
    from robot_bridge.auxiliary.recognition.frozen_layers import EfficientNetLayers

    network = EfficientNetLayers(pool=1)
    try:
        network.features(np.zeros((1, 32, 32, 3), np.uint8))  # loads what runs it
    except ImportError as error:
        raise AuthenticityError(f"image features need onnxruntime ({error}): pip install 'armstack[vlm]'") from error
    return lambda crops: network.features(crops)[-1]


def image_score(name: Score, crops: NDArray[np.uint8]) -> Tensor:
    """A baseline that asks no prior (n,)."""
    if name == "rigid":
        return baselines.rigid(frozen_features(), crops)
    return baselines.contrast(crops) if name == "contrast" else baselines.slope(crops)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scorer:
    """Scores crops.

    Attributes:
        score: which one; a mixture goes before it.
        prior: the diffusion model.
        step: of its noise schedule.
        noises: (s, d) directions, the same for all crops.
        reference: of real crops at that step.
        weights: a, b, c.
        mixture: few-shot; None without.
    """

    score: Score
    prior: Prior
    step: int
    noises: Tensor
    reference: Reference
    weights: Weights
    mixture: Mixture | None = None

    def __call__(self, crops: NDArray[np.uint8]) -> Tensor:
        """(n,) of crops (n, side, side, 3)."""
        if self.mixture is not None:
            return self.mixture.probability(self.columns(crops), frozen_features()(crops) if self.mixture.probe else None)
        if self.score not in OF_PRIOR:
            return image_score(self.score, crops)
        return scores_of_terms(self._standardised(crops), self.weights)[self.score]

    def columns(self, crops: NDArray[np.uint8]) -> Tensor:
        """What the mixture weighs of the prior (n, 4): kappa, D, bias and C, standardised."""
        found = self._standardised(crops)
        combined = scores_of_terms(found, self.weights)["criterion"]
        return torch.stack((found["kappa"], found["gradient"], found["bias"], combined), dim=1)

    def _standardised(self, crops: NDArray[np.uint8]) -> dict[str, Tensor]:
        return self.reference.standardised(terms(self.prior, crops, self.step, self.noises))
