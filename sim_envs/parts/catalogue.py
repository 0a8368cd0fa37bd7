"""CLASSES: the twenty classes of parts, and how an object of each is drawn from a random generator; HOUSEHOLD: more, of an extra.

Eight of the twenty are two words that combine ("hex nut", "square block"), so that a class can be held out while both its words are known.
A label is an index into `EVERY`; the twenty come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sim_envs.parts import outlines
from sim_envs.parts.household import OBJECTS, household_assets, household_solid
from sim_envs.parts.packaged import packaged_solid
from sim_envs.parts.solids import Solid, box, joined, prism, revolved, tube

Generator = np.random.Generator
Pose = Literal["standing", "lying", "upside down"]
Build = Callable[[Generator, bool], Solid]
"""(generator, whether the part's own detail is missing) -> solid; of equal generators, both are the same object."""

RADIUS = 0.05
"""Radius of every object before its own size, metres."""


@dataclass(frozen=True, kw_only=True)
class PartClass:
    """One class.

    Attributes:
        name: as a person says it.
        build: draws an object; of any size, z is up when it stands.
        poses: in which it lies about.
        lying_deg: turn about y from standing to lying.
        missing: its detail that may be missing ("tooth"); empty where there is none.
        picture: texture that is printed on it, a file of robosuite's or a household object; empty for none.
        natural: colour word of that texture.
    """

    name: str
    build: Build
    poses: tuple[Pose, ...] = ("standing", "lying")
    lying_deg: float = 90.0
    missing: str = ""
    picture: str = ""
    natural: str = ""


def make_solid(part: PartClass, seed: int, *, missing: bool = False) -> Solid:
    """The object of that class and seed, its middle at the origin, of radius `RADIUS`; without its detail where `missing`."""
    whole = part.build(np.random.default_rng(seed), False)
    middle = 0.5 * (whole.vertices.min(axis=0) + whole.vertices.max(axis=0))
    solid = part.build(np.random.default_rng(seed), True) if missing else whole
    return solid.moved(-middle).scaled(RADIUS / whole.moved(-middle).radius)


def _varied(mesh: Callable[[str], Solid], name: str, generator: Generator, missing: bool) -> Solid:
    return mesh(name).scaled(generator.uniform((0.85, 0.85, 0.85), (1.15, 1.15, 1.15)))


def _of_household(name: str, natural: str, *poses: Pose) -> PartClass:
    build = partial(_varied, household_solid, name)
    return PartClass(name=name, build=build, poses=poses or ("standing", "lying"), picture=name, natural=natural)


def _mug(generator: Generator, missing: bool) -> Solid:
    height, wall, foot = generator.uniform(0.9, 1.35), generator.uniform(0.06, 0.1), generator.uniform(0.75, 1.0)
    reach, thick, low = generator.uniform(0.32, 0.45), generator.uniform(0.07, 0.1), generator.uniform(0.18, 0.3)
    profile = [(0, 0), (0.5 * foot, 0), (0.5, 0.25 * height), (0.5, height)]
    profile += [(0.5 - wall, height), (0.5 - wall, 0.25 * height), (0.5 * foot - wall, 1.2 * wall), (0, 1.2 * wall)]
    cup = revolved(profile)
    angles = np.linspace(-np.pi / 2, np.pi / 2, 14)
    middle, tall = height * (0.5 + 0.1 * low), height * (0.42 - 0.4 * low)
    path = np.column_stack([0.46 + reach * np.cos(angles), np.zeros(14), middle + tall * np.sin(angles)])
    return cup if missing else joined(cup, tube(path, thick))


def _bowl(generator: Generator, missing: bool) -> Solid:
    depth, wall, foot = generator.uniform(0.35, 0.6), generator.uniform(0.035, 0.06), generator.uniform(0.3, 0.45)
    angles = np.linspace(0.0, np.pi / 2, 10)
    outer = [(foot + (1 - foot) * np.sin(angle), 0.06 + depth * (1 - np.cos(angle))) for angle in angles]
    inner = [(foot + (1 - foot) * np.sin(angle) - wall, 0.06 + wall + depth * (1 - np.cos(angle))) for angle in angles[:-1]]
    inner.append((1 - wall, 0.06 + depth))
    return revolved([(0, 0), (foot * 0.8, 0), (foot * 0.8, 0.06), *outer, *reversed(inner), (0, 0.06 + wall)])


def _gear(generator: Generator, missing: bool) -> Solid:
    teeth, depth, thick = int(generator.integers(10, 17)), generator.uniform(0.18, 0.26), generator.uniform(0.22, 0.4)
    bore = generator.uniform(0.18, 0.36)
    gone = int(generator.integers(teeth))
    outline = outlines.cog(teeth, 1.0, depth, (gone, (gone + 1) % teeth) if missing else ())
    return prism(outline, thick, outlines.round_hole(outline, bore))


def _bracket(generator: Generator, missing: bool) -> Solid:
    long, tall, thick, wide = (generator.uniform(*bounds) for bounds in ((0.9, 1.2), (0.7, 1.1), (0.18, 0.26), (0.5, 0.8)))
    foot = box(long, wide, thick)
    wall = box(thick, wide, tall).moved((thick / 2 - long / 2, 0, tall / 2 - thick / 2))
    return joined(foot, wall)


def _bolt(generator: Generator, missing: bool) -> Solid:
    length, shaft, head = generator.uniform(1.2, 1.9), generator.uniform(0.2, 0.28), generator.uniform(0.42, 0.52)
    height, pitch = generator.uniform(0.28, 0.38), generator.uniform(0.09, 0.12)
    threads = int(0.75 * length / pitch)
    profile = [(0.0, -length)]
    for turn in range(threads):
        profile += [(0.84 * shaft, -length + turn * pitch), (shaft, -length + (turn + 0.5) * pitch)]
    profile += [(0.84 * shaft, -length + threads * pitch), (0.84 * shaft, 0.05), (0.0, 0.05)]
    rod = revolved(profile, 24)
    return rod if missing else joined(rod, prism(outlines.polygon(6, head, 1), height).moved((0, 0, height / 2)))


def _cone(generator: Generator, missing: bool) -> Solid:
    height, tip, brim = generator.uniform(1.2, 1.8), generator.uniform(0.05, 0.14), generator.uniform(0.6, 0.72)
    return joined(revolved([(0, 0), (0.5, 0), (tip, height), (0, height)]), box(2 * brim, 2 * brim, 0.1))


_SHAPES = ("square", "hex", "round", "star")


def _outline(shape: str, generator: Generator) -> NDArray[np.float64]:
    if shape == "star":
        return outlines.star(int(generator.integers(5, 8)), 1.0, generator.uniform(0.38, 0.5))
    return {"square": outlines.polygon(4, 1.0), "hex": outlines.polygon(6, 1.0), "round": outlines.circle(1.0)}[shape]


def _nut(shape: str, generator: Generator, missing: bool) -> Solid:
    outline = _outline(shape, generator)
    inside = float(np.linalg.norm(outline, axis=1).min())
    hole = generator.uniform(0.55, 0.72) * inside
    return prism(outline, generator.uniform(0.3, 0.5), None if missing else outlines.round_hole(outline, hole))


def _block(shape: str, generator: Generator, missing: bool) -> Solid:
    return prism(_outline(shape, generator), generator.uniform(1.1, 1.9))


CLASSES: tuple[PartClass, ...] = (
    PartClass(name="bottle", build=partial(_varied, packaged_solid, "bottle")),
    PartClass(name="can", build=partial(_varied, packaged_solid, "can"), picture="soda", natural="red"),
    PartClass(name="milk carton", build=partial(_varied, packaged_solid, "milk"), picture="ceramic", natural="white"),
    PartClass(name="cereal box", build=partial(_varied, packaged_solid, "cereal"), picture="cereal", natural="orange"),
    PartClass(name="bread", build=partial(_varied, packaged_solid, "bread"), poses=("standing",), picture="bread", natural="brown"),
    PartClass(name="lemon", build=partial(_varied, packaged_solid, "lemon"), poses=("standing",), picture="lemon", natural="yellow"),
    PartClass(name="mug", build=_mug, poses=("standing", "lying", "upside down"), missing="handle"),
    PartClass(name="bowl", build=_bowl, poses=("standing", "upside down")),
    PartClass(name="gear", build=_gear, missing="tooth"),
    PartClass(name="bracket", build=_bracket),
    PartClass(name="bolt", build=_bolt, missing="head"),
    PartClass(name="cone", build=_cone, poses=("standing",)),
    *(PartClass(name=f"{shape} nut", build=partial(_nut, shape), missing="hole") for shape in _SHAPES),
    *(PartClass(name=f"{shape} block", build=partial(_block, shape)) for shape in _SHAPES),
)
NAMES: tuple[str, ...] = tuple(part.name for part in CLASSES)

HOUSEHOLD: tuple[PartClass, ...] = (
    _of_household("ketchup", "orange"),
    _of_household("butter", "red"),
    _of_household("orange juice", "yellow"),
    _of_household("popcorn", "blue"),
    _of_household("alphabet soup", "red"),
    _of_household("frypan", "black", "standing", "upside down"),
    _of_household("coffee mug", "red", "standing", "lying", "upside down"),
    _of_household("wine bottle", "green"),
    _of_household("book", "brown"),
)
"""Drawn where they are asked for, and never beside another object, so that the twenty look as they do without them."""
EVERY: tuple[PartClass, ...] = (*CLASSES, *HOUSEHOLD)
EVERY_NAME: tuple[str, ...] = tuple(part.name for part in EVERY)


def named(classes: Iterable[str]) -> tuple[str, ...]:
    """The names with `household` written out.

    Raises:
        HouseholdMissing: one of them is a household object's, and their meshes are not installed.
    """
    names = tuple(name for word in classes for name in (OBJECTS if word == "household" else (word,)))
    if set(names) & set(OBJECTS):
        household_assets()
    return names
