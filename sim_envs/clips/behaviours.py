"""Behaviours in pairs: what happens in a clip and in its twin, of the same things at the same places, and what is said of it.

The twins of `ORDERED` families show the same moments in another order: a single picture, or any number of them without their order, does
not tell one from the other. Those of the other families differ in what is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sim_envs.clips.scene import COLOURS, HEIGHTS, KINDS, Looks, State, Thing
from sim_envs.clips.scripts import Moment, Script, backwards

FAMILIES: dict[str, float] = {"then": 0.30, "stack": 0.14, "hold": 0.12, "drop": 0.14, "drawer": 0.08, "push": 0.14, "pour": 0.08}
"""Family -> share of the pairs."""
ORDERED = ("then", "stack", "hold", "drop", "drawer")
_SUBJECTS = ("the gripper", "the robot", "the arm")
_VERBS: dict[str, tuple[str, ...]] = {
    "lift": ("lifts {0} and puts it back", "raises {0} and sets it back"),
    "tap": ("taps {0}", "touches {0}"),
    "stack": ("puts {0} on {1}", "stacks {0} on {1}"),
    "unstack": ("takes {0} off {1}", "removes {0} from {1}"),
    "pick": ("picks up {0}", "grabs {0} and holds it up"),
    "place": ("puts down {0}", "lowers {0} to the table and lets go"),
    "lift, drop": ("lifts {0}, then drops it", "raises {0} and then drops it"),
    "drop, lift": ("drops {0}, then lifts it", "drops {0} and then raises it"),
    "open": ("opens the {2} drawer", "pulls the {2} drawer open"),
    "close": ("closes the {2} drawer", "pushes the {2} drawer shut"),
    "left": ("pushes {0} to the left", "slides {0} left"),
    "right": ("pushes {0} to the right", "slides {0} right"),
    "pour": ("pours {0} over {1}", "empties {0} over {1}"),
}
_SINGLE = ("lift", "tap")


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """What happens in one clip.

    Attributes:
        meaning: equal for clips of which the same is said.
        sentences: ways to say it, of which any may be asked for.
        moments: see `scripts`.
    """

    meaning: str
    sentences: tuple[str, ...]
    moments: list[Moment]


@dataclass(frozen=True, kw_only=True)
class Twins:
    """Two clips of one scene.

    Attributes:
        family: of `FAMILIES`.
        looks: of both.
        behaviours: first and second.
    """

    family: str
    looks: Looks
    behaviours: tuple[Behaviour, Behaviour]


def draw_twins(generator: np.random.Generator) -> Twins:
    """A pair at random."""
    family = str(generator.choice(list(FAMILIES), p=list(FAMILIES.values())))
    kinds = [str(kind) for kind in generator.permutation(KINDS)[:2]]
    if family == "stack" and kinds[1] == "ball":
        kinds.reverse()  # nothing stays on a ball
    colours = [str(colour) for colour in generator.choice(list(COLOURS), 3, replace=False)]
    things = (Thing(kind=kinds[0], colour=colours[0]), Thing(kind=kinds[1], colour=colours[1]))
    wood = np.clip(np.array((0.62, 0.52, 0.40)) * generator.uniform(0.75, 1.25) * generator.uniform(0.92, 1.08, 3), 0, 1)
    looks = Looks(
        things=things,
        drawer_colour=colours[2],
        drawer_y=float(generator.uniform(-0.14, 0.14)),
        table_rgb=(float(wood[0]), float(wood[1]), float(wood[2])),
        light=float(generator.uniform(0.75, 1.25)),
        shift=tuple(generator.uniform(-0.03, 0.03, 3)),
    )
    return Twins(family=family, looks=looks, behaviours=_behaviours(family, looks, _start(things, generator), generator))


def every_word() -> list[str]:
    """Sentences that hold every word a sentence of a clip can hold."""
    verbs = [phrase.format("", "", "") for phrases in _VERBS.values() for phrase in phrases]
    return [*verbs, *_SUBJECTS, " ".join((*KINDS, *COLOURS)), "first then and after that a the on table with drawer holding over nothing"]


def _start(things: tuple[Thing, Thing], generator: np.random.Generator) -> State:
    places = np.zeros((2, 3))
    sides = generator.permutation([-1.0, 1.0])
    for row, (thing, side) in enumerate(zip(things, sides, strict=True)):
        places[row] = (generator.uniform(0.0, 0.16), side * generator.uniform(0.075, 0.15), HEIGHTS[thing.kind] / 2)
    hand = np.array([generator.uniform(-0.06, 0.02), generator.uniform(-0.08, 0.08), 0.34])
    return State(hand=hand, grip=0.075, things=places, tilts=np.zeros(2))


def _behaviours(family: str, looks: Looks, start: State, generator: np.random.Generator) -> tuple[Behaviour, Behaviour]:
    def script() -> Script:
        return Script(looks.things, start, looks.drawer_y)

    first, second = script(), script()
    if family == "then":
        events = [(verb, thing) for verb in _SINGLE for thing in (0, 1)]
        pairs = list(combinations(events, 2))
        pair = pairs[int(generator.integers(len(pairs)))]
        return _in_turn(first, looks, pair), _in_turn(second, looks, pair[::-1])
    if family == "push":
        for course, side, name in ((first, -1, "left"), (second, 1, "right")):
            course.say(_words(name, looks))
            course.push(0, side)
        return _told("left", looks, first.moments), _told("right", looks, second.moments)
    if family == "pour":
        for course, thing in ((first, 0), (second, 1)):
            course.say(_words("pour", looks, thing))
            course.pour(thing, 1 - thing)
        return _told("pour", looks, first.moments), _told("pour", looks, second.moments, thing=1)
    names = {"stack": ("stack", "unstack"), "hold": ("pick", "place"), "drop": ("lift, drop", "drop, lift"), "drawer": ("open", "close")}
    one, other = names[family]
    first.say(_words(one, looks))
    if family == "stack":
        first.stack(0, 1)
    elif family == "hold":
        first.raise_up(0)
    elif family == "drawer":
        first.open_drawer()
    else:
        return _lift_and_drop(first, second, looks)
    return _told(one, looks, first.moments), _told(other, looks, backwards(first.moments, _words(other, looks)))


def _lift_and_drop(first: Script, second: Script, looks: Looks) -> tuple[Behaviour, Behaviour]:
    """A thing cannot fall upwards, so these twins are not each other backwards: one ends as the other begins, thing in hand."""
    first.say(_words("lift, drop", looks))
    first.raise_up(0)
    held = first.state
    first.drop(0)
    again = Script(looks.things, held, looks.drawer_y)
    again.say(_words("drop, lift", looks))
    again.drop(0)
    again.raise_up(0)
    return _told("lift, drop", looks, first.moments), _told("drop, lift", looks, again.moments)


def _in_turn(script: Script, looks: Looks, events: Sequence[tuple[str, int]]) -> Behaviour:
    said = []
    for verb, thing in events:
        script.say(_words(verb, looks, thing))
        {"lift": script.lift, "tap": script.tap}[verb](thing)
        said.append([_phrase(phrase, looks, thing) for phrase in _VERBS[verb]])
    (one, two), subject = said, _SUBJECTS
    sentences = (
        f"{subject[0]} {one[0]}, then {two[0]}.",
        f"{subject[1]} first {one[1]} and then {two[0]}.",
        f"{subject[2]} {one[0]}, after that {two[1]}.",
    )
    return Behaviour(meaning=f"{one[0]}, then {two[0]}", sentences=sentences, moments=script.moments)


def _told(name: str, looks: Looks, moments: list[Moment], thing: int = 0) -> Behaviour:
    phrases = [_phrase(phrase, looks, thing) for phrase in _VERBS[name]]
    sentences = tuple(f"{subject} {phrase}." for subject, phrase in zip(_SUBJECTS, (*phrases, phrases[0]), strict=True))
    return Behaviour(meaning=phrases[0], sentences=sentences, moments=moments)


def _words(name: str, looks: Looks, thing: int = 0) -> str:
    return _phrase(_VERBS[name][0], looks, thing)


def _phrase(phrase: str, looks: Looks, thing: int) -> str:
    return phrase.format(looks.things[thing].words, looks.things[1 - thing].words, looks.drawer_colour)
