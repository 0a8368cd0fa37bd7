"""Guards: what a frame's vectors say about whether its object is known, and where it is not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from robot_bridge.auxiliary.monitoring.regional_score import class_scores, gl_mcm, mcm, outlier_map, regional_mcm
from robot_bridge.auxiliary.protocols import Prediction
from robot_bridge.auxiliary.vlm.interface import VLM


@dataclass(frozen=True, kw_only=True, eq=False)
class Judgement:
    """What a guard makes of n frames.

    Attributes:
        classes: probabilities of the known classes (n, C).
        known: score (n,), higher = known.
        outliers: (n, places) in [0, 1], 1 = belongs to no known class; None where regions take no part.
    """

    classes: Tensor
    known: Tensor
    outliers: Tensor | None = None


class Rule(Protocol):
    """From vectors to a judgement."""

    def judge(self, image: Tensor, tokens: Tensor, scale: Tensor) -> Judgement:
        """Judges n frames.

        Args:
            image: joint vectors (n, d).
            tokens: local tokens (n, places, d).
            scale: exp(logit_scale).
        """
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class MaximumConcept:
    """MCM: the whole image alone. `texts` (C, d), length 1; `temperature` of the score."""

    texts: Tensor
    temperature: float = 1.0

    def judge(self, image: Tensor, tokens: Tensor, scale: Tensor) -> Judgement:
        """See `Rule`."""
        whole = F.normalize(image, dim=-1) @ self.texts.T
        return Judgement(classes=torch.softmax(scale * whole, dim=-1), known=mcm(whole, self.temperature))


@dataclass(frozen=True, kw_only=True, eq=False)
class GlobalLocalConcept:
    """GL-MCM: the whole image, and its most certain region. Attributes as of `MaximumConcept`."""

    texts: Tensor
    temperature: float = 1.0

    def judge(self, image: Tensor, tokens: Tensor, scale: Tensor) -> Judgement:
        """See `Rule`."""
        whole, regions = F.normalize(image, dim=-1) @ self.texts.T, F.normalize(tokens, dim=-1) @ self.texts.T
        nothing = regions[..., :0]
        return Judgement(
            classes=torch.softmax(scale * whole, dim=-1),
            known=gl_mcm(whole, regions, self.temperature),
            outliers=outlier_map(regions, nothing, scale),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalPrompts:
    """Local-Prompt: global, local and negative prompts.

    Attributes:
        whole: frozen global prompts (C, d), length 1, as are the others.
        local: one for each class (C, d).
        negative: (N, d), of no class.
        k: regions that count.
        temperature: of the score.
    """

    whole: Tensor
    local: Tensor
    negative: Tensor
    k: int
    temperature: float = 1.0

    def judge(self, image: Tensor, tokens: Tensor, scale: Tensor) -> Judgement:
        """See `Rule`."""
        regions = F.normalize(tokens, dim=-1)
        whole, local, negative = F.normalize(image, dim=-1) @ self.whole.T, regions @ self.local.T, regions @ self.negative.T
        scores = class_scores(whole, local, self.k)
        return Judgement(
            classes=scores / scores.sum(dim=-1, keepdim=True),
            known=regional_mcm(whole, local, negative, self.k, self.temperature),
            outliers=outlier_map(local, negative, scale),
        )


class GuardRecogniser:
    """Says of every frame which known class it is, and whether it is one at all.

    `values`: `known_score`, higher = known; `unknown`, 1 where it lies below the threshold, else 0, for a rule that holds the arm;
    `map`: outliers (n, rows, columns).

    Args:
        vlm: whose vectors.
        classes: names of the known classes.
        rule: how they are judged.
        threshold: of `known_score`.
    """

    def __init__(self, vlm: VLM, classes: Sequence[str], rule: Rule, threshold: float) -> None:
        self._vlm, self._classes, self.rule, self.threshold = vlm, tuple(classes), rule, threshold

    @property
    def classes(self) -> tuple[str, ...]:
        """See `protocols.Recogniser`."""
        return self._classes

    def predict(self, frames: NDArray[np.uint8], condition: Mapping[str, Any] | None = None) -> Prediction:
        """See `protocols.Recogniser`."""
        with torch.no_grad():
            image, tokens = self._vlm.encode_image(self._vlm.preprocess(frames), tokens=True)
            found = self.rule.judge(image.float().cpu(), tokens.float().cpu(), self._vlm.logit_scale.exp().cpu())
        return Prediction(
            scores=found.classes.numpy(),
            map=None if found.outliers is None else as_grid(found.outliers).numpy(),
            values={"known_score": found.known.numpy(), "unknown": (found.known < self.threshold).float().numpy()},
        )


def as_grid(places: Tensor) -> Tensor:
    """(n, rows * columns) in reading order as (n, rows, columns); maps are square."""
    side = math.isqrt(places.shape[1])
    return places.unflatten(1, (side, side))
