"""The steps of SelfSynthX (arXiv 2502.14044; released code), each a function of what the one before gave.

descriptions D of every picture, label not given
Z*: the label's concepts with the most information on D
round 1: the model is told label and Z* and answers; the plain question is kept with the answer
round 2 ..: it samples answers to plain questions; the one with the most information on Z* is kept if it names the label
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.models.language import SentenceEncoder
from rl_core.training.seeding import derive_seed, numpy_generator
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.lmm.interface import LMM, Told, untold
from robot_bridge.auxiliary.recognition.selfsynth import queries
from robot_bridge.auxiliary.recognition.selfsynth.concepts import Concepts
from robot_bridge.auxiliary.recognition.selfsynth.config import SelfSynthConfig
from robot_bridge.auxiliary.recognition.selfsynth.information import answer_scores, concept_scores, other_rows, select_concepts
from robot_bridge.auxiliary.recognition.selfsynth.labels import likeness, mentions, without_names
from robot_bridge.auxiliary.recognition.selfsynth.queries import DESCRIBE, SIMPLE, draw_queries, short_answer, with_article

MAX_WORDS = 48
"""Of an answer [code: 128 to 256 tokens]."""
_DESCRIBE_TEMPERATURE, _TOLD_TEMPERATURE = 1.0, 0.3
SAMPLE_TEMPERATURE, SAMPLE_TOP_P = 0.7, 0.6
"""Of rejection sampling [code], as are the two above."""
_ALIKE = 0.7
"""difflib ratio from which a name counts as nearly said [code]."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One pair of fine-tuning.

    Attributes:
        row: of the picture.
        query: the plain question, without label or concepts.
        answer: what is learnt.
        accepted: whether the model itself said it; otherwise it is the fallback.
    """

    row: int
    query: str
    answer: str
    accepted: bool

    def to_json(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)


def describe(lmm: LMM, frames: NDArray[np.uint8], config: SelfSynthConfig, seed: int, told: Told = untold) -> list[list[str]]:
    """Descriptions of each picture, label not given: `descriptions` for each instruction."""
    rows, prompts = _crossed(len(frames), DESCRIBE)
    said = lmm.generate(
        frames[rows], prompts, config.descriptions, _DESCRIBE_TEMPERATURE, 1.0, MAX_WORDS, seed=derive_seed(seed, "describe"), told=told
    )
    found: list[list[str]] = [[] for _ in range(len(frames))]
    for row, texts in zip(rows, said, strict=True):
        found[row] += texts
    return found


def image_concepts(
    descriptions: Sequence[Sequence[str]], data: ImageData, concepts: Concepts, encoder: SentenceEncoder, tau: float
) -> list[list[str]]:
    """Z* of each picture: concepts of its label, best first. Negatives are the descriptions of all OTHER pictures."""
    counts = [len(texts) for texts in descriptions]
    vectors = encoder.encode([text for texts in descriptions for text in texts])
    of_label = {name: encoder.encode(concepts.texts(name)) for name in data.classes}
    found = []
    for row, label in enumerate(data.labels):
        name, others = data.classes[label], other_rows(counts, row)
        scores = concept_scores(vectors[~others], of_label[name], vectors[others], tau)
        found.append([concepts.texts(name)[place] for place in select_concepts(scores)])
    return found


def random_concepts(chosen: Sequence[Sequence[str]], data: ImageData, concepts: Concepts, seed: int) -> list[list[str]]:
    """The baseline: for each picture as many concepts of its label as `chosen`, at random."""
    generator = numpy_generator(seed, "random concepts")
    found = []
    for row, label in enumerate(data.labels):
        texts = concepts.texts(data.classes[label])
        found.append([texts[place] for place in generator.permutation(len(texts))[: len(chosen[row])]])
    return found


def first_round(
    lmm: LMM, data: ImageData, evidence: Sequence[Sequence[str]], config: SelfSynthConfig, seed: int, told: Told = untold
) -> list[Pair]:
    """Answers of a model that is told label and concepts, with the PLAIN questions. See `first_pair` for what is kept."""
    generator = numpy_generator(seed, "queries", 1)
    rows = np.repeat(np.arange(len(data)), config.queries)
    asked = [query for _ in range(len(data)) for query in draw_queries(config.queries, generator, simple=True)]
    labels = [data.classes[data.labels[row]] for row in rows]
    prompts = [queries.told(query, label, evidence[row]) for query, label, row in zip(asked, labels, rows, strict=True)]
    said = lmm.generate(data.frames[rows], prompts, 1, _TOLD_TEMPERATURE, 1.0, MAX_WORDS, seed=derive_seed(seed, "round", 1), told=told)
    paired = zip(rows, asked, said, labels, strict=True)
    return [first_pair(int(row), query, answers[0], label, data.classes) for row, query, answers, label in paired]


def first_pair(row: int, query: str, answer: str, label: str, names: Sequence[str]) -> Pair:
    """The answer if it names the label, with the label added if it nearly does, otherwise the short answer.

    In the released code the last case stands inside the second one and is never reached.
    """
    if label in mentions(answer, names):
        return Pair(row=row, query=query, answer=answer, accepted=True)
    if likeness(label, without_names(answer, names)) >= _ALIKE:  # another class' name is not nearly the label
        more = f"{answer.rstrip(' .')}. more specifically, this image shows {with_article(label)}."
        return Pair(row=row, query=query, answer=more, accepted=True)
    return Pair(row=row, query=query, answer=short_answer(label), accepted=False)


def sampling_round(
    lmm: LMM,
    data: ImageData,
    evidence: Sequence[Sequence[str]],
    concepts: Concepts,
    encoder: SentenceEncoder,
    config: SelfSynthConfig,
    seed: int,
    number: int,
    told: Told = untold,
) -> list[Pair]:
    """Round `number`, from 2 on: visual rejection sampling, label not given."""
    generator = numpy_generator(seed, "queries", number)
    rows = np.repeat(np.arange(len(data)), config.queries)
    asked = [query for _ in range(len(data)) for query in draw_queries(config.queries, generator, simple=False)]
    drawn = derive_seed(seed, "round", number)
    said = lmm.generate(data.frames[rows], asked, config.samples, SAMPLE_TEMPERATURE, SAMPLE_TOP_P, MAX_WORDS, seed=drawn, told=told)
    every = concepts.every_text()
    vectors = encoder.encode(every)
    pairs = []
    for row, query, answers in zip(rows, asked, said, strict=True):
        label = data.classes[data.labels[row]]
        if config.accept == "all":
            pairs.append(Pair(row=int(row), query=query, answer=answers[0], accepted=True))
            continue
        mine = np.array([text in evidence[row] for text in every])
        scores = answer_scores(encoder.encode(answers), vectors[mine], vectors[~mine], config.tau)
        best = answers[int(scores.argmax())]
        if label in mentions(best, data.classes):
            pairs.append(Pair(row=int(row), query=query, answer=best, accepted=True))
        else:
            short = SIMPLE[int(generator.integers(len(SIMPLE)))]
            pairs.append(Pair(row=int(row), query=short, answer=short_answer(label), accepted=False))
    return pairs


def label_pairs(data: ImageData, config: SelfSynthConfig, seed: int) -> list[Pair]:
    """The baseline: as many pairs as a round has, whose answers are the label alone."""
    generator = numpy_generator(seed, "queries", 0)
    found = []
    for row, label in enumerate(data.labels):
        for query in draw_queries(config.queries, generator, simple=True):
            found.append(Pair(row=row, query=query, answer=f"this is {with_article(data.classes[label])}.", accepted=True))
    return found


def named_label(answer: str, names: Sequence[str]) -> str | None:
    """The class that an answer names first; None where it names none."""
    return next(iter(mentions(answer, names)), None)


def acceptance(pairs: Sequence[Pair]) -> float:
    """Share of pairs whose answer is the model's own."""
    return sum(pair.accepted for pair in pairs) / len(pairs)


def _crossed(count: int, prompts: Sequence[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Every picture with every prompt, picture by picture."""
    return np.repeat(np.arange(count), len(prompts)), list(prompts) * count
