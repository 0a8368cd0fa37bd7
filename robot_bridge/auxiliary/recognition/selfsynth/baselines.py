"""What self-training is compared with, beside settings of it (`evidence`, `accept`): labels alone, and the best of n answers untrained."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rl_core.models.language import SentenceEncoder
from rl_core.training.seeding import derive_seed
from robot_bridge.auxiliary.lmm.interface import LMM
from robot_bridge.auxiliary.recognition.selfsynth.concepts import Concepts
from robot_bridge.auxiliary.recognition.selfsynth.config import SelfSynthConfig
from robot_bridge.auxiliary.recognition.selfsynth.information import answer_scores
from robot_bridge.auxiliary.recognition.selfsynth.queries import EXAM
from robot_bridge.auxiliary.recognition.selfsynth.rounds import MAX_WORDS, SAMPLE_TEMPERATURE, SAMPLE_TOP_P, label_pairs, named_label
from robot_bridge.auxiliary.recognition.selfsynth.self_training import SelfTraining


def tune_on_labels(training: SelfTraining) -> float:
    """Fine-tunes the base model as one round does, on answers that are the label alone; returns the loss."""
    pairs = label_pairs(training.data, training.config, training.seed)
    return training.tune(pairs, training.evidence().descriptions, 0)


def best_of_n(
    lmm: LMM, frames: NDArray[np.uint8], concepts: Concepts, encoder: SentenceEncoder, config: SelfSynthConfig, seed: int
) -> list[str]:
    """For each picture, of `samples` answers the one with the most information on the concepts of the class that it names itself.

    An answer that names no class counts least. The label is not known here, so it cannot reject.
    """
    every = concepts.every_text()
    vectors, names = encoder.encode(every), list(concepts.classes)
    mine = {name: np.isin(every, concepts.texts(name)) for name in names}
    said = lmm.generate(
        frames, [EXAM] * len(frames), config.samples, SAMPLE_TEMPERATURE, SAMPLE_TOP_P, MAX_WORDS, seed=derive_seed(seed, "best of n")
    )
    found = []
    for answers in said:
        scores = []
        for answer, vector in zip(answers, encoder.encode(answers), strict=True):
            label = named_label(answer, names)
            own = None if label is None else mine[label]
            scores.append(-np.inf if own is None else answer_scores(vector[None], vectors[own], vectors[~own], config.tau)[0] / own.sum())
        found.append(answers[int(np.argmax(scores))])
    return found
