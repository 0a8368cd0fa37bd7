"""Names in text, and concepts that must not hold them."""

import pytest

from robot_bridge.auxiliary.recognition.selfsynth.citations import citation_figures, cited
from robot_bridge.auxiliary.recognition.selfsynth.labels import likeness, mentions, without_names
from robot_bridge.auxiliary.recognition.selfsynth.rounds import named_label

NAMES = ("bottle", "milk bottle", "can", "hex nut", "nut")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("This is a Milk-Bottle.", ["milk bottle"]),
        ("a bottle, not a milk bottle", ["bottle", "milk bottle"]),
        ("milk, bottle", ["milk bottle"]),  # letters alone count [code]
        ("a candle that can", ["can"]),
        ("a candle in silicone", []),
        ("two hex nuts beside a nut", ["hex nut", "nut"]),
        ("hex nut", ["hex nut"]),
        ("hexnut", []),
        ("", []),
    ],
)
def test_the_longest_name_is_matched_first_and_whole_words_only(text: str, found: list[str]) -> None:
    assert mentions(text, NAMES) == found
    assert named_label(text, NAMES) == (found[0] if found else None)


def test_a_name_that_is_nearly_said_is_alike() -> None:
    assert likeness("hex nut", "it looks like a hex nit") > 0.8 > 0.7 > likeness("hex nut", "it looks like a round bolt")
    assert likeness("nut", "") == 0.0 and likeness("milk bottle", "milk") > 0.5


def test_class_names_are_taken_out_of_concepts() -> None:
    assert without_names("The hex-nut's six sides, unlike a NUT; nutty", NAMES) == "The part's six sides, unlike a part; nutty"
    assert without_names("milk bottles and a canopy", NAMES) == "parts and a canopy"


def test_features_are_cited_word_for_word_and_the_longer_covers_the_shorter() -> None:
    features = ("a flat face", "a flat face with six sides", "a hole", "six sides")
    assert cited("It has a hole, and A flat face with six sides.", features) == ["a hole", "a flat face with six sides"]
    assert cited("a flat face. with a hole", features) == ["a flat face", "a hole"]
    assert cited("a holes", features) == []


def test_what_another_class_has_is_not_visible() -> None:
    features = ("a handle", "a rim", "teeth")
    answers = ["a handle and a rim", "teeth, a rim", "nothing"]
    visible = [{"a handle": True, "a rim": True}, {"a handle": True, "a rim": True}, {"a handle": True}]
    figures = citation_figures(answers, features, visible)
    assert figures == {"citing_two": pytest.approx(1 / 3), "cited_precision": 0.75, "cited": pytest.approx(4 / 3)}
    assert citation_figures(["nothing"], features, visible[:1])["cited_precision"] == 0.0
