"""Which picture is asked what, which answers become data, and what they are kept with."""

from __future__ import annotations

import numpy as np
import pytest

from robot_bridge.auxiliary.recognition.selfsynth import queries
from robot_bridge.auxiliary.recognition.selfsynth.baselines import best_of_n
from robot_bridge.auxiliary.recognition.selfsynth.rounds import (
    acceptance,
    describe,
    first_pair,
    first_round,
    image_concepts,
    label_pairs,
    random_concepts,
    sampling_round,
)
from tests.robot_bridge.auxiliary.recognition.selfsynth.stand_ins import (
    COLOURS,
    FEATURES,
    ScriptedLMM,
    WordCounts,
    concepts,
    config,
    parts,
    true_name,
)

ENCODER = WordCounts()


def described(frame: np.ndarray, prompt: str, which: int) -> str:
    """The first two features of the class, and the words of no name."""
    return f"it has {FEATURES[true_name(frame)][0]} and {FEATURES[true_name(frame)][1]}."


def evidence() -> list[list[str]]:
    data = parts()
    return image_concepts(describe(ScriptedLMM(described), data.frames, config(), 0), data, concepts(), ENCODER, 0.1)


def test_descriptions_are_of_their_own_picture_and_are_not_told_the_label() -> None:
    data, lmm = parts(), ScriptedLMM(described)
    found = describe(lmm, data.frames, config(descriptions=2), 0)
    assert [len(texts) for texts in found] == [6] * 9
    for row, texts in enumerate(found):
        assert set(texts) == {described(data.frames[row], "", 0)}
    assert {prompt for _, prompt in lmm.asked} == set(queries.DESCRIBE)
    assert not [prompt for _, prompt in lmm.asked if any(name in prompt for name in COLOURS)]


def test_concepts_that_were_described_are_chosen() -> None:
    for row, chosen in enumerate(evidence()):
        assert set(chosen[:2]) == set(FEATURES[list(COLOURS)[row // 3]][:2]) and len(chosen) == 3


def test_random_concepts_are_as_many_of_the_same_label() -> None:
    chosen = evidence()
    found = random_concepts(chosen, parts(), concepts(), 3)
    assert found != chosen and found == random_concepts(chosen, parts(), concepts(), 3)
    for row, texts in enumerate(found):
        assert len(texts) == len(chosen[row]) == len(set(texts)) and set(texts) <= set(FEATURES[list(COLOURS)[row // 3]])


def test_every_picture_is_asked_with_its_own_label_and_concepts() -> None:
    """The released code pairs pictures in picture-major with questions in item-major order."""
    data, given = parts(), evidence()
    lmm = ScriptedLMM(lambda frame, prompt, which: f"this is a {true_name(frame)}.")
    pairs = first_round(lmm, data, given, config(queries=4), 0)
    assert [pair.row for pair in pairs] == [row for row in range(9) for _ in range(4)] and acceptance(pairs) == 1.0
    for (frame, prompt), pair in zip(lmm.asked, pairs, strict=True):
        assert np.array_equal(frame, data.frames[pair.row])
        assert prompt == queries.told(pair.query, true_name(frame), given[pair.row])


def test_training_keeps_the_plain_question() -> None:
    lmm = ScriptedLMM(lambda frame, prompt, which: prompt.split(". ")[0] + ".")
    pairs = first_round(lmm, parts(), evidence(), config(queries=4), 0)
    plain = {*queries.SIMPLE, *queries.EXPLAIN, *queries.REASON}
    assert {pair.query for pair in pairs} <= plain and len({pair.query for pair in pairs}) > 4


@pytest.mark.parametrize(
    ("answer", "kept", "accepted"),
    [
        ("this is a blue nut because of its rim.", "this is a blue nut because of its rim.", True),
        ("this is a blue net.", "this is a blue net. more specifically, this image shows a blue nut.", True),
        ("no idea at all.", "this is an image of a blue nut.", False),  # the branch that is dead in the released code
        ("", "this is an image of a blue nut.", False),
    ],
)
def test_a_first_answer_names_the_label_nearly_does_or_falls_back(answer: str, kept: str, accepted: bool) -> None:
    pair = first_pair(4, "what is this.", answer, "blue nut", tuple(COLOURS))
    assert (pair.row, pair.query, pair.answer, pair.accepted) == (4, "what is this.", kept, accepted)


def test_a_longer_name_does_not_accept_a_shorter_label() -> None:
    assert not first_pair(0, "", "this is a red nut.", "nut", ("nut", "red nut")).accepted
    pairs = sample(lambda frame, prompt, which: "this is a red nut with a long shadow.")
    of_green = [pair for pair in pairs if pair.row >= 6]
    assert of_green and not any(pair.accepted for pair in of_green)


def sample(script, **settings):
    return sampling_round(ScriptedLMM(script), parts(), evidence(), concepts(), ENCODER, config(**settings), 0, 2)


def three(frame: np.ndarray, prompt: str, which: int) -> str:
    """One vague answer, one on the picture's concepts, one on another class'."""
    name = true_name(frame)
    other = next(label for label in FEATURES if label != name)
    return (
        f"this is a {name} of some kind.",
        f"this is a {name} because it has {FEATURES[name][0]} and {FEATURES[name][1]}.",
        f"this is a {name} because it has {FEATURES[other][0]} and {FEATURES[other][1]}.",
    )[which]


def test_the_answer_with_the_most_information_on_the_concepts_is_taken() -> None:
    data = parts()
    pairs = sample(three)
    assert all(pair.answer == three(data.frames[pair.row], "", 1) and pair.accepted for pair in pairs) and len(pairs) == 18
    assert {pair.query for pair in pairs} <= {*queries.EXPLAIN, *queries.REASON}


def test_the_best_answer_is_rejected_if_it_does_not_name_the_label() -> None:
    def wrong(frame: np.ndarray, prompt: str, which: int) -> str:
        said = three(frame, prompt, which)
        return said.replace(true_name(frame), "thing") if which == 1 else said

    pairs, names = sample(wrong), list(COLOURS)
    assert not any(pair.accepted for pair in pairs) and acceptance(pairs) == 0.0
    assert all(pair.answer == queries.short_answer(names[pair.row // 3]) and pair.query in queries.SIMPLE for pair in pairs)


def test_without_the_filter_any_answer_is_kept() -> None:
    pairs = sample(lambda frame, prompt, which: f"thing {which}.", accept="all")
    assert {pair.answer for pair in pairs} == {"thing 0."} and acceptance(pairs) == 1.0


def test_sampling_is_not_told_the_label() -> None:
    lmm = ScriptedLMM(three)
    sampling_round(lmm, parts(), evidence(), concepts(), ENCODER, config(), 0, 2)
    assert not [prompt for _, prompt in lmm.asked if any(name in prompt for name in COLOURS)]


def test_labels_alone_say_nothing_else() -> None:
    pairs = label_pairs(parts(), config(queries=3), 0)
    assert len(pairs) == 27 and {pair.answer for pair in pairs} == {f"this is a {name}." for name in COLOURS}
    assert [pair.row for pair in pairs] == [row for row in range(9) for _ in range(3)]


def test_the_best_of_n_untrained_is_the_one_whose_features_fit_the_name_it_says() -> None:
    data = parts()

    def script(frame: np.ndarray, prompt: str, which: int) -> str:
        name = true_name(frame)
        other = next(label for label in FEATURES if label != name)
        return ("a thing.", f"this is a {other} with {FEATURES[name][0]}.", f"this is a {name} with {FEATURES[name][0]}.")[which]

    said = best_of_n(ScriptedLMM(script), data.frames, concepts(), ENCODER, config(), 0)
    assert said == [script(frame, "", 2) for frame in data.frames]
