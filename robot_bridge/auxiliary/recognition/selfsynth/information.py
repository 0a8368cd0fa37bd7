"""InfoNCE estimates of mutual information over sentence vectors: which concepts a picture shows, and which answer rests on them.

Vectors have length 1; tau is explicit, as mean-pooled vectors lie close together and its size decides what counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
LEAST_CONCEPTS = 3
KEEP_ABOVE = 0.4
"""Standard deviations over a label's mean score above which a concept is kept [code]."""


def concept_scores(own: Vectors, concepts: Vectors, others: Vectors, tau: float) -> NDArray[np.float64]:
    """I_j = sum_i log[ exp(d_i.z_j/tau) / (exp(d_i.z_j/tau) + sum_l exp(z_j.n_l/tau)) ], for each concept j of the label.

    Args:
        own: d, descriptions of the picture (m, D).
        concepts: z (c, D).
        others: n, descriptions of all OTHER pictures (l, D); those of the picture itself are no negatives.
        tau: temperature.
    """
    positive = own.astype(np.float64) @ concepts.T.astype(np.float64) / tau
    return _log_share(positive, _log_sum(concepts, others, tau)[None]).sum(axis=0)


def answer_scores(answers: Vectors, positives: Vectors, negatives: Vectors, tau: float) -> NDArray[np.float64]:
    """I(y; Z*) = sum_j log[ exp(y.z_j/tau) / (exp(y.z_j/tau) + sum_l exp(y.n_l/tau)) ], for each answer y.

    Args:
        answers: y (k, D).
        positives: Z*, the picture's concepts (c, D).
        negatives: all other concepts (l, D).
        tau: temperature.
    """
    positive = answers.astype(np.float64) @ positives.T.astype(np.float64) / tau
    return _log_share(positive, _log_sum(answers, negatives, tau)[:, None]).sum(axis=1)


def support(own: Vectors, concept: Vectors, usual: float, tau: float) -> float:
    """How much a picture's descriptions speak for a concept more than other pictures' do, 0..1; 0.5 is as much as they.

        mean_i e_i / (e_i + u),   e_i = exp(d_i.z/tau),  u = mean over other pictures' descriptions of exp(n.z/tau)

    Args:
        own: d (m, D).
        concept: z (D,).
        usual: log u.
        tau: temperature.
    """
    return float(np.exp(_log_share(own.astype(np.float64) @ concept.astype(np.float64) / tau, np.array(usual))).mean())


def usual_support(concepts: Vectors, descriptions: Vectors, tau: float) -> NDArray[np.float64]:
    """log u of `support` for each concept (c,)."""
    return _log_sum(concepts, descriptions, tau) - np.log(len(descriptions))


def select_concepts(scores: NDArray[np.float64]) -> list[int]:
    """Concepts whose score, standardised over the label's concepts, is above 0.4; at least three; best first [code].

    Standardising makes the rule the same at any tau and for vectors however close together.
    """
    order = np.argsort(-scores, kind="stable")
    deviation = scores.std(ddof=1) if len(scores) > 1 else 0.0
    standardised = (scores - scores.mean()) / deviation if deviation > 0 else np.zeros(len(scores))
    count = max(int((standardised > KEEP_ABOVE).sum()), LEAST_CONCEPTS)
    return [int(index) for index in order[:count]]


def other_rows(counts: Sequence[int], own: int) -> NDArray[np.bool_]:
    """Mask over the rows of all pictures' descriptions, one picture after the other: true for those of every picture but `own`."""
    mask = np.ones(sum(counts), bool)
    start = sum(counts[:own])
    mask[start : start + counts[own]] = False
    return mask


def _log_sum(rows: Vectors, others: Vectors, tau: float) -> NDArray[np.float64]:
    return np.logaddexp.reduce(rows.astype(np.float64) @ others.T.astype(np.float64) / tau, axis=1)


def _log_share(positive: NDArray[np.float64], negative: NDArray[np.float64]) -> NDArray[np.float64]:
    return positive - np.logaddexp(positive, negative)
