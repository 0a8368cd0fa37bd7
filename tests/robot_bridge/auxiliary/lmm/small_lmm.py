"""A SmallLMM of a few thousand weights, and pictures it can learn by heart."""

from __future__ import annotations

import numpy as np

from robot_bridge.auxiliary.lmm.decoder import DecoderSizes
from robot_bridge.auxiliary.lmm.small import SmallLMM
from robot_bridge.auxiliary.lmm.vocabulary import Vocabulary
from tests.robot_bridge.auxiliary.tiny_vlm import tiny_vlm

QUESTION = "what is this."
CAPTIONS = (
    "a red mug.",
    "a green bowl, on a table.",
    "the blue gear with many teeth.",
    "yellow ring.",
    "a tall bottle, and a lemon.",
    "one lemon.",
    "a red mug, next to a green bowl.",
    "nothing but a table.",
)
SIZES = DecoderSizes(width=48, blocks=2, heads=4, length=80)


def small_lmm(*more: str) -> SmallLMM:
    """Untrained; equal in every call."""
    return SmallLMM(tiny_vlm(), Vocabulary.of([*CAPTIONS, QUESTION, *more]), SIZES, grid=2, seed=1)


def eight_pictures() -> np.ndarray:
    """One of each of eight hues, plain."""
    hues = [(230, 20, 20), (20, 230, 20), (20, 20, 230), (230, 230, 20), (20, 230, 230), (230, 20, 230), (230, 120, 20), (20, 120, 230)]
    return np.broadcast_to(np.array(hues)[:, None, None], (8, 16, 16, 3)).astype(np.uint8)
