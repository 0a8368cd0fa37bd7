"""What a new decoder is taught: to describe, to answer vaguely, to use what it is told; and hardly any name."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_core.training.config import ConfigError
from robot_bridge.auxiliary.recognition.selfsynth import queries
from robot_bridge.auxiliary.recognition.selfsynth.base_corpus import UNNAMED, answer, base_texts, vocabulary
from robot_bridge.auxiliary.recognition.selfsynth.citations import cited
from robot_bridge.auxiliary.recognition.selfsynth.concepts import read_concepts
from robot_bridge.auxiliary.recognition.selfsynth.config import BaseConfig
from robot_bridge.auxiliary.recognition.selfsynth.labels import mentions
from robot_bridge.auxiliary.recognition.selfsynth.visibility import visible_features
from tests.robot_bridge.auxiliary.recognition.selfsynth.drawn_like import NAMES, concept_file, drawn_parts


@pytest.fixture
def texts(tmp_path: Path):
    concepts, data = read_concepts(concept_file(tmp_path)), drawn_parts(100, 3)
    return concepts, data, base_texts(data, concepts, BaseConfig(named=0.2, imagined=0.0), 0)


def test_descriptions_name_nothing_and_mention_what_is_visible(texts) -> None:
    concepts, data, found = texts
    visible = visible_features(data, concepts)
    described = [(row, said) for row, prompt, said in found if prompt in queries.DESCRIBE]
    assert len(described) == 600 and not [said for _, said in described if mentions(said, NAMES)]
    mentioned = [(row, cited(said, concepts.every_text())) for row, said in described]
    assert all(each and all(visible[row][feature] for feature in each) for row, each in mentioned)
    share = sum(len(each) for _, each in mentioned) / sum(sum(visible[row].values()) for row, _ in mentioned)
    assert 0.55 < share < 0.75


def test_the_right_name_is_seldom_said(texts) -> None:
    _, data, found = texts
    plain = [(row, said) for row, prompt, said in found if prompt in {*queries.SIMPLE, *queries.EXPLAIN, *queries.REASON}]
    named = [(row, names) for row, said in plain if (names := mentions(said, NAMES))]
    assert 0.14 < len(named) / len(plain) < 0.26 and all(names == [data.classes[data.labels[row]]] for row, names in named)
    assert all(UNNAMED in said for row, said in plain if not mentions(said, NAMES))


def test_what_is_told_does_not_depend_on_the_picture(texts) -> None:
    _, data, found = texts
    told = [(row, prompt, said) for row, prompt, said in found if prompt.startswith("this is")]
    right = [data.classes[data.labels[row]] in mentions(prompt, NAMES) for row, prompt, _ in told]
    assert len(told) == 600 and 0.7 / 3 - 0.07 < sum(right) / len(right) < 0.7 / 3 + 0.07  # chance
    assert all(mentions(prompt, NAMES) == mentions(said, NAMES) for _, prompt, said in told)


def test_the_form_of_an_answer_follows_the_query() -> None:
    assert answer(queries.SIMPLE[0], "axle", ["a rim"]) == "this is an axle."
    assert answer(queries.EXAM, "gear", ["teeth", "a rim", "a hole"]) == "this is a gear because it has teeth, a rim and a hole."
    assert answer(queries.REASON[0], "gear", ["teeth"]) == "it has teeth, so this is a gear."


def test_the_vocabulary_covers_every_text(texts) -> None:
    concepts, data, found = texts
    words = vocabulary(concepts, data)
    assert words.unknown(text for _, *both in found for text in both) == []
    assert words.unknown([queries.short_answer("gear"), "more specifically, this image shows an object.", *concepts.every_text()]) == []


@pytest.mark.parametrize("settings", [{"named": 1.5}, {"mentioned": 0.0}, {"imagined": -0.1}])
def test_shares_are_shares(settings: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=f"BaseConfig.{next(iter(settings))}"):
        BaseConfig(**settings)
