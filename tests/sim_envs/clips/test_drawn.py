"""Clips of scripted behaviours: what they show and what is said of them. Each test draws a handful of small pictures."""

from __future__ import annotations

import numpy as np
import pytest

from sim_envs.clips.behaviours import FAMILIES, ORDERED, Twins, every_word
from sim_envs.clips.drawn import STILL_CLASSES, draw_clips, draw_stills, plan_twins
from sim_envs.clips.scene import DRAWER_TRAVEL, HEIGHTS
from sim_envs.clips.scripts import duration, state_at

pytestmark = pytest.mark.usefixtures("graphics")


@pytest.fixture(scope="module")
def twins() -> list[Twins]:
    return plan_twins(0, 120)


def of(twins: list[Twins], family: str) -> list[Twins]:
    found = [pair for pair in twins if pair.family == family]
    assert found, family
    return found


def final(pair: Twins, turn: int):
    return state_at(pair.behaviours[turn].moments, 1.0)[0]


def test_every_family_is_there_and_no_meaning_twice(twins: list[Twins]) -> None:
    assert {pair.family for pair in twins} == set(FAMILIES)
    meanings = [behaviour.meaning for pair in twins for behaviour in pair.behaviours]
    assert len(set(meanings)) == len(meanings)


def test_sentences_name_what_is_there_in_known_words(twins: list[Twins]) -> None:
    known = set(" ".join(every_word()).replace(",", "").split())
    for pair in twins:
        for behaviour in pair.behaviours:
            for sentence in behaviour.sentences:
                assert set(sentence.replace(",", "").replace(".", "").split()) <= known
        things = [thing.words for thing in pair.looks.things]
        assert pair.family == "drawer" or all(any(words in behaviour.meaning for words in things) for behaviour in pair.behaviours)


@pytest.mark.parametrize("family", ["stack", "hold", "drawer"])
def test_twins_are_each_other_backwards(twins: list[Twins], family: str) -> None:
    for pair in of(twins, family)[:3]:
        one, other = (behaviour.moments for behaviour in pair.behaviours)
        assert duration(one) == pytest.approx(duration(other))
        for share in (0.0, 0.3, 0.55, 1.0):
            first, second = state_at(one, share)[0], state_at(other, 1.0 - share)[0]
            np.testing.assert_allclose(first.hand, second.hand, atol=1e-6)
            np.testing.assert_allclose(first.things, second.things, atol=1e-6)


def test_events_in_turn_take_the_same_time_and_end_where_they_began(twins: list[Twins]) -> None:
    for pair in of(twins, "then"):
        lengths = [duration(behaviour.moments) for behaviour in pair.behaviours]
        assert lengths[0] == pytest.approx(lengths[1], rel=0.05)
        start = pair.behaviours[0].moments[0].state.things
        assert all(np.allclose(final(pair, turn).things, start, atol=1e-9) for turn in (0, 1))


def test_behaviours_do_what_is_said(twins: list[Twins]) -> None:
    for pair in of(twins, "push"):
        moved = [final(pair, turn).things[0][1] - pair.behaviours[turn].moments[0].state.things[0][1] for turn in (0, 1)]
        assert moved == pytest.approx([-0.15, 0.15])
    for pair in of(twins, "stack"):
        top, below = (pair.looks.things[index].kind for index in (0, 1))
        high = final(pair, 0).things
        assert high[0][2] == pytest.approx(HEIGHTS[below] + HEIGHTS[top] / 2) and np.allclose(high[0][:2], high[1][:2])
    for pair in of(twins, "drawer"):
        assert final(pair, 0).drawer == DRAWER_TRAVEL and final(pair, 1).drawer == 0.0
    for pair in of(twins, "drop"):
        kind = pair.looks.things[0].kind
        assert final(pair, 0).things[0][2] == pytest.approx(HEIGHTS[kind] / 2) and final(pair, 1).things[0][2] > 0.15
    for pair in of(twins, "pour"):
        assert max(abs(moment.state.tilts).max() for moment in pair.behaviours[0].moments) == pytest.approx(2.0)


def test_pictures_follow_the_script_and_the_seed(twins: list[Twins]) -> None:
    chosen = [of(twins, "hold")[0], of(twins, "push")[0]]
    clips = draw_clips(0, chosen, 0, frames=4, size=48)
    assert clips.frames.shape == (4, 4, 48, 48, 3) and clips.frames.dtype == np.uint8
    assert clips.ordered.tolist() == [True, True, False, False] == [pair.family in ORDERED for pair in chosen for _ in (0, 1)]
    pictures = clips.frames.astype(float)
    assert np.abs(pictures[0] - pictures[1][::-1]).mean() < 4  # equal moments in the opposite order: sensor noise alone
    assert np.abs(pictures[0] - pictures[1]).mean() > 4 and np.abs(pictures[2][-1] - pictures[3][-1]).mean() > 4
    assert pictures.std(axis=(2, 3, 4)).min() > 10
    again = draw_clips(0, chosen, 0, frames=4, size=48)
    assert np.array_equal(clips.frames, again.frames)
    assert not np.array_equal(clips.frames, draw_clips(1, chosen, 0, frames=4, size=48).frames)


def test_stills_are_of_what_their_captions_say() -> None:
    stills = draw_stills(0, 3, 6, size=48)
    assert stills.frames.shape == (6, 48, 48, 3) and stills.labels.max() < len(STILL_CLASSES)
    assert np.array_equal(draw_stills(0, 5, 1, size=48).frames[0], stills.frames[2])  # a still does not depend on those before it
    for label, colour, caption in zip(stills.labels, stills.colours, stills.captions, strict=True):
        assert caption.startswith(("the gripper ", "a ")) and STILL_CLASSES[label] and colour
