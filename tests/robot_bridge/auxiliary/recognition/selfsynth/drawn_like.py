"""Coloured parts with the factors of drawn ones, concepts for them, and settings that cost seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.lmm.decoder import DecoderSizes
from robot_bridge.auxiliary.recognition.selfsynth.config import BaseConfig, SelfSynthConfig
from tests.robot_bridge.auxiliary.tiny_vlm import CLASSES, coloured_parts

NAMES = CLASSES[:3]
_FILE = """classes:
  mug:
    - {feature: a curved handle, seen: {axis: [1, 0, 0], angle_deg: [0, 100]}}
    - {feature: an open top, seen: {where: {pose: [standing]}}}
    - {feature: a warm colour, seen: always}
    - {feature: a flat foot, seen: {where: {pose: [lying]}}}
  bowl:
    - {feature: a wide rim, seen: {axis: [1, 0, 0], angle_deg: [0, 100]}}
    - {feature: a hollow inside, seen: {where: {pose: [standing]}}}
    - {feature: a leafy colour, seen: always}
    - {feature: a rounded back, seen: {where: {pose: [lying]}}}
  gear:
    - {feature: many teeth, seen: {axis: [1, 0, 0], angle_deg: [0, 100]}}
    - {feature: a round hole, seen: {where: {pose: [standing]}}}
    - {feature: a cold colour, seen: always}
    - {feature: a toothed side, seen: {where: {pose: [lying]}}}
"""


def concept_file(folder: Path) -> Path:
    """A file of four features for each of three classes."""
    file = folder / "concepts.yaml"
    file.write_text(_FILE)
    return file


def drawn_parts(each: int, seed: int) -> ImageData:
    """`each` pictures of three classes with a pose, a view, a colour and a size."""
    data = coloured_parts(each=each, seed=seed).only(NAMES)
    generator, count = np.random.default_rng(seed), len(data)
    factors = {
        "azimuth_deg": generator.uniform(0, 360, count),
        "elevation_deg": generator.uniform(15, 75, count),
        "roll_deg": np.zeros(count),
        "pose": generator.choice(["standing", "lying"], count),
        "colour": np.array(["red", "green", "blue"])[data.labels],
        "size": generator.choice(["small", ""], count),
    }
    return replace(data, factors=factors, instances=np.arange(count, dtype=np.int64) + 1000 * seed)


def tiny_settings(folder: Path, **settings: object) -> SelfSynthConfig:
    """Settings of a run of seconds."""
    return SelfSynthConfig().override(
        **{
            "vlm": "tiny",
            "concepts": str(concept_file(folder)),
            "grid": 2,
            "rounds": 2,
            "queries": 2,
            "samples": 2,
            "descriptions": 1,
            "views": 1,
            "epochs": 1,
            "base": BaseConfig(epochs=1).to_dict(),
            **settings,
        }
    )


def small_sizes(**given: int) -> DecoderSizes:
    """Sizes of a decoder that costs nothing, unless they are given."""
    return DecoderSizes(**{"width": 32, "blocks": 1, "heads": 2, **given})
