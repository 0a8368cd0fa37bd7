"""The InfoNCE estimates and what is chosen by them."""

import numpy as np
import pytest

from robot_bridge.auxiliary.recognition.selfsynth.information import (
    answer_scores,
    concept_scores,
    other_rows,
    select_concepts,
    support,
    usual_support,
)


def unit(*shape: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_concept_scores_are_the_papers_formula() -> None:
    own, concepts, others, tau = unit(3, 8), unit(4, 8, seed=1), unit(5, 8, seed=2), 0.1
    found = concept_scores(own, concepts, others, tau)
    for j in range(4):
        by_hand = 0.0
        for i in range(3):
            positive = np.exp(np.float64(own[i] @ concepts[j]) / tau)
            by_hand += np.log(positive / (positive + sum(np.exp(np.float64(concepts[j] @ n) / tau) for n in others)))
        assert found[j] == pytest.approx(by_hand, rel=1e-4)


def test_answer_scores_are_the_papers_formula_and_their_argmax_rests_on_the_concepts() -> None:
    answers, positives, negatives, tau = unit(3, 8), unit(2, 8, seed=1), unit(4, 8, seed=2), 0.1
    found = answer_scores(answers, positives, negatives, tau)
    for k in range(3):
        negative = sum(np.exp(np.float64(answers[k] @ n) / tau) for n in negatives)
        terms = [np.exp(np.float64(answers[k] @ z) / tau) for z in positives]
        assert found[k] == pytest.approx(sum(np.log(term / (term + negative)) for term in terms), rel=1e-4)
    axes = np.eye(6, dtype=np.float32)  # two concepts, two others, two that belong to neither
    mixed = np.stack([axes[2], (axes[0] + axes[1]) / 2**0.5, axes[4], (axes[0] + axes[3]) / 2**0.5])
    assert answer_scores(mixed, axes[:2], axes[2:4], tau).argmax() == 1


def test_a_pictures_own_descriptions_are_no_negatives() -> None:
    counts = [2, 3, 1]
    assert other_rows(counts, 0).tolist() == [False, False, True, True, True, True]
    assert other_rows(counts, 1).tolist() == [True, True, False, False, False, True]
    own, concepts, others = unit(2, 8), unit(3, 8, seed=1), unit(4, 8, seed=2)
    apart = concept_scores(own, concepts, others, 0.1)
    assert not np.allclose(apart, concept_scores(own, concepts, np.concatenate([own, others]), 0.1))


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_concepts_above_the_mean_are_kept_best_first_and_at_least_three(scale: float) -> None:
    assert select_concepts(scale * np.array([0.0, 10.0, 9.0, 11.0, 10.5, 0.0, 0.0, 0.0])) == [3, 4, 1, 2]
    assert select_concepts(scale * np.array([0.0, 0.0, 0.0, 9.0, 0.1])) == [3, 4, 0]
    assert len(select_concepts(np.full(6, scale))) == 3


def test_the_limit_is_four_tenths_of_a_deviation() -> None:
    scores = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])  # mean 4, deviation 2.74: above 5.095
    assert select_concepts(scores) == [8, 7, 6]
    assert select_concepts(np.append(scores, 8.5)) == [9, 8, 7, 6]


def test_support_is_a_half_where_a_picture_says_as_much_as_others() -> None:
    concept, others = unit(1, 8), unit(6, 8, seed=3)
    usual = usual_support(concept, np.repeat(others[:1], 4, axis=0), 0.1)
    assert support(others[:1], concept[0], float(usual[0]), 0.1) == pytest.approx(0.5, abs=1e-6)
    spread = float(usual_support(concept, others, 0.1)[0])
    assert support(concept, concept[0], spread, 0.1) > 0.9 > support(-concept, concept[0], spread, 0.1)
    assert usual_support(concept, np.repeat(others, 3, axis=0), 0.1) == pytest.approx(usual_support(concept, others, 0.1))
