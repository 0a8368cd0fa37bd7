"""Texts that teach a new decoder what a general model knows: to describe, to answer in general words, to use what it is told.

What it is told in a prompt is drawn without regard to the picture, so that no name is learnt from it; the right name of a picture occurs
in a small share of its texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rl_core.training.seeding import numpy_generator
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.lmm.vocabulary import Vocabulary
from robot_bridge.auxiliary.recognition.selfsynth import queries
from robot_bridge.auxiliary.recognition.selfsynth.concepts import Concepts
from robot_bridge.auxiliary.recognition.selfsynth.config import BaseConfig
from robot_bridge.auxiliary.recognition.selfsynth.queries import joined, told, with_article
from robot_bridge.auxiliary.recognition.selfsynth.visibility import visible_features

UNNAMED = "object"
_DESCRIPTIONS, _ANSWERS, _TOLD = 2, 2, 2
"""Texts of each kind of a picture."""
_MOST_TOLD = 5

Text = tuple[int, str, str]
"""(picture, prompt, answer)."""


def base_texts(data: ImageData, concepts: Concepts, config: BaseConfig, seed: int) -> list[Text]:
    """Prompts and answers on drawn pictures.

    Raises:
        RecognitionError: pictures whose scene is not known, or features without `seen`.
    """
    generator = numpy_generator(seed, "base texts")
    seen, every = visible_features(data, concepts), concepts.every_text()
    found: list[Text] = []
    for row, shown in enumerate(seen):
        name, scene = data.classes[data.labels[row]], _scene(data, row)
        found += [(row, _any(queries.DESCRIBE, generator), _description(shown, scene, config, generator)) for _ in range(_DESCRIPTIONS)]
        for _ in range(_ANSWERS):
            called = name if generator.random() < config.named else UNNAMED
            query = queries.draw_queries(1, generator, simple=True)[0]
            found.append((row, query, answer(query, called, [f"a {scene[0]} colour", f"a {scene[1]} size"])))
        for _ in range(_TOLD):
            label = _any(list(concepts.classes), generator) if generator.random() < 0.7 else _made_up(every, generator)
            given = [every[place] for place in generator.permutation(len(every))[: int(generator.integers(2, _MOST_TOLD + 1))]]
            query = queries.draw_queries(1, generator, simple=True)[0]
            found.append((row, told(query, label, given), answer(query, label, given)))
    return found


def answer(query: str, label: str, features: Sequence[str]) -> str:
    """An answer of the form that the query asks for."""
    if query in queries.SIMPLE:
        return f"this is {with_article(label)}."
    if query in queries.REASON:
        return f"it has {joined(features)}, so this is {with_article(label)}."
    return f"this is {with_article(label)} because it has {joined(features)}."


def vocabulary(concepts: Concepts, data: ImageData) -> Vocabulary:
    """All words of queries, answers, concepts, class names and described scenes."""
    return Vocabulary.of(_every_sentence(concepts, data))


def _every_sentence(concepts: Concepts, data: ImageData) -> Iterator[str]:
    yield from (*queries.DESCRIBE, *queries.SIMPLE, *queries.EXPLAIN, *queries.REASON, *concepts.every_text(), *concepts.classes)
    yield from data.classes
    for query in (queries.SIMPLE[0], queries.EXPLAIN[0], queries.REASON[0]):
        yield told(query, UNNAMED, ["an", "a"]) + answer(query, UNNAMED, ["a", "an"])
    yield queries.short_answer(UNNAMED) + " more specifically, this image shows a colour, a size. it is standing, lying, upside down."
    yield "large middle small " + " ".join(sorted(set(map(str, data.factors.get("colour", ())))))


def _description(shown: dict[str, bool], scene: tuple[str, str, str], config: BaseConfig, generator: np.random.Generator) -> str:
    chance = {feature: config.mentioned if seen else config.imagined for feature, seen in shown.items()}
    chosen = [feature for feature in shown if generator.random() < chance[feature]]
    if not chosen:
        chosen = [_any([feature for feature, seen in shown.items() if seen] or list(shown), generator)]
    order = generator.permutation(len(chosen))
    return f"it has {joined([chosen[place] for place in order])}. it is {scene[1]} and {scene[0]}, {scene[2]}."


def _scene(data: ImageData, row: int) -> tuple[str, str, str]:
    colour, size, pose = (str(data.factors[name][row]) for name in ("colour", "size", "pose"))
    return colour, size or "middle", pose


def _made_up(texts: Sequence[str], generator: np.random.Generator) -> str:
    # Two words of concepts: a name that occurs nowhere, so that only the prompt can tell it.
    words = [word for text in texts for word in text.split()]
    return " ".join(words[int(generator.integers(len(words)))] for _ in range(2))


def _any(choices: Sequence[str], generator: np.random.Generator) -> str:
    return choices[int(generator.integers(len(choices)))]
