"""Drawn clips and stills as plain arrays: which clips a seed has, their pictures, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim_envs.clips.behaviours import ORDERED, Behaviour, Twins, draw_twins
from sim_envs.clips.scene import KINDS, ClipRenderer
from sim_envs.clips.scripts import duration, state_at

STILL_CLASSES = (*KINDS, "drawer")
_NOISE = 2.0
"""Deviation of the sensor's noise, grey levels."""


@dataclass(frozen=True, kw_only=True)
class DrawnClips:
    """n clips; n is even, and clips 2 i and 2 i + 1 are twins.

    Attributes:
        frames: (n, F, size, size, 3) uint8, RGB.
        sentences: n tuples: ways to say what happens.
        meanings: n; equal where the same is said.
        ordered: (n,) bool, whether the clip differs from its twin in the order of events alone.
        seconds: (n,) how long it is.
    """

    frames: NDArray[np.uint8]
    sentences: tuple[tuple[str, ...], ...]
    meanings: tuple[str, ...]
    ordered: NDArray[np.bool_]
    seconds: NDArray[np.float64]


def plan_twins(seed: int, pairs: int) -> list[Twins]:
    """The pairs of a seed; no two clips of different pairs mean the same while there are enough meanings (some hundreds)."""
    generator = np.random.default_rng([seed, 11])
    found: list[Twins] = []
    known: set[str] = set()
    refused = 0
    while len(found) < pairs:
        twins = draw_twins(generator)
        meanings = {behaviour.meaning for behaviour in twins.behaviours}
        if meanings & known and refused < 20 * pairs:
            refused += 1
            continue
        known |= meanings
        found.append(twins)
    return found


def draw_clips(
    seed: int, twins: Sequence[Twins], first: int, *, frames: int, size: int, done: Callable[[int], None] = lambda count: None
) -> DrawnClips:
    """Draws both clips of each pair; equal arguments give equal pictures on one machine.

    Args:
        seed: of noise and of the moments at which frames are taken.
        twins: pairs of `plan_twins`.
        first: number of the first of them.
        frames: of a clip, evenly over its time.
        size: pixels of width and height.
        done: told how many clips are drawn.

    Raises:
        RenderingUnavailable: no graphics library draws here.
    """
    drawn: list[NDArray[np.uint8]] = []
    told: list[tuple[Behaviour, bool]] = []
    with ClipRenderer(size) as renderer:
        for number, pair in enumerate(twins, first):
            renderer.dress(pair.looks)
            generator = np.random.default_rng([seed, 13, number])
            shares = (np.arange(frames) + generator.uniform(0.25, 0.75, frames)) / frames
            for turn, behaviour in enumerate(pair.behaviours):
                at = shares if turn == 0 else 1.0 - shares[::-1]  # twins that are each other backwards show equal states
                pictures = np.stack([renderer.render(state_at(behaviour.moments, share)[0]) for share in at])
                drawn.append(_sensed(pictures, generator))
                told.append((behaviour, pair.family in ORDERED))
                done(len(drawn))
    return DrawnClips(
        frames=np.stack(drawn),
        sentences=tuple(behaviour.sentences for behaviour, _ in told),
        meanings=tuple(behaviour.meaning for behaviour, _ in told),
        ordered=np.array([ordered for _, ordered in told]),
        seconds=np.array([duration(behaviour.moments) for behaviour, _ in told]),
    )


@dataclass(frozen=True, kw_only=True)
class DrawnStills:
    """n single pictures of such scenes, to train a model of pictures and words on.

    Attributes:
        frames: (n, size, size, 3) uint8, RGB.
        labels: (n,) int64, index into `STILL_CLASSES`: what the caption is about.
        colours: n words, its colour.
        captions: n sentences.
    """

    frames: NDArray[np.uint8]
    labels: NDArray[np.int64]
    colours: tuple[str, ...]
    captions: tuple[str, ...]


def draw_stills(seed: int, first: int, count: int, *, size: int, done: Callable[[int], None] = lambda count: None) -> DrawnStills:
    """Draws stills `first` to `first + count - 1` of a seed: a moment of a behaviour, with what is there or what is being done.

    Raises:
        RenderingUnavailable: no graphics library draws here.
    """
    pictures, labels, colours, captions = [], [], [], []
    with ClipRenderer(size) as renderer:
        for number in range(first, first + count):
            generator = np.random.default_rng([seed, 17, number])
            pair = draw_twins(generator)
            renderer.dress(pair.looks)
            behaviour = pair.behaviours[int(generator.integers(2))]
            state, doing = state_at(behaviour.moments, float(generator.uniform()))
            pictures.append(_sensed(renderer.render(state)[None], generator)[0])
            about = int(generator.integers(3)) if pair.family == "drawer" else int(generator.integers(2))
            kind = "drawer" if about == 2 else pair.looks.things[about].kind
            labels.append(STILL_CLASSES.index(kind))
            colours.append(pair.looks.drawer_colour if about == 2 else pair.looks.things[about].colour)
            there = f"a {pair.looks.things[0].words[4:]}, a {pair.looks.things[1].words[4:]} and a {pair.looks.drawer_colour} drawer."
            captions.append(there if generator.random() < 0.3 else f"the gripper {doing}.")
            done(len(pictures))
    return DrawnStills(frames=np.stack(pictures), labels=np.array(labels, np.int64), colours=tuple(colours), captions=tuple(captions))


def _sensed(pictures: NDArray[np.uint8], generator: np.random.Generator) -> NDArray[np.uint8]:
    noise = generator.normal(0, _NOISE, pictures.shape)
    return np.clip(np.round(pictures + noise), 0, 255).astype(np.uint8)
