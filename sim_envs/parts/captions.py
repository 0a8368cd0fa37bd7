"""Captions from the state of the scene: class, colour, size, pose, support, neighbours, light."""

from __future__ import annotations

import numpy as np

from sim_envs.parts.catalogue import CLASSES
from sim_envs.parts.crate import SIZES, Crate, Instance
from sim_envs.parts.factors import Factors
from sim_envs.parts.surfaces import COLOURS, SHIFTED_TABLES, SPURIOUS_TABLES, TABLES


def caption(crate: Crate, label: int, factors: Factors) -> str:
    """A sentence on a picture, e.g. "a small red mug, lying on the wooden table next to a blue can, in dim light."."""
    generator = np.random.default_rng([factors.seed, 2])
    instance = crate.instances[label]
    words = ["damaged"] * factors.damaged + [instance.size] + [instance.colour, instance.part.name]
    sentence = f"{_article(words)}, {factors.pose}{_support(factors)}" if generator.random() < 0.8 else _article(words)
    if factors.others and generator.random() < 0.8:
        sentence += " next to " + " and ".join(_short(crate.instances[other]) for other in factors.others)
    if factors.light_word and generator.random() < 0.8:
        sentence += f", in {factors.light_word} light"
    return sentence + "."


def every_word() -> list[str]:
    """Sentences that hold every word a caption of the twenty classes can hold, whatever the data."""
    tables = [*TABLES.values(), *SHIFTED_TABLES.values()]
    words = [*COLOURS, *SIZES, *(part.name for part in CLASSES), *tables, "damaged standing lying upside down in the bin on table"]
    return [" ".join(words), "next to a an and in dim bright warm blue light", "a photo of a picture the this is part object with without"]


def _support(factors: Factors) -> str:
    table = {**TABLES, **SHIFTED_TABLES}[factors.table]
    if factors.aligned >= 0:
        table = next(word for word, rgb in SPURIOUS_TABLES.items() if rgb == factors.table_rgb)
    return " in the bin" if factors.in_bin else f" on the {table} table"


def _short(instance: Instance) -> str:
    return _article([instance.colour, instance.part.name])


def _article(words: list[str]) -> str:
    text = " ".join(word for word in words if word)
    return f"{'an' if text[0] in 'aeiou' else 'a'} {text}"
