"""Names and the teacher that says what they mean: what DeMul's maps are fitted on.

The paper's teacher is a commercial embedding of a language model. Here it is any `SentenceEncoder`; the default is all-MiniLM-L6-v2, a
sentence encoder whose weights come whole in a Python package, so that nothing is fetched and the same name always means the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rl_core.models.language import SentenceEncoder
from robot_bridge.auxiliary.recognition.common_nouns import COMMON_NOUNS
from robot_bridge.auxiliary.vlm.interface import VLM
from robot_bridge.auxiliary.vlm.small import SmallVLM

_ADJECTIVES = (
    "red", "green", "blue", "yellow", "orange", "purple", "pink", "brown", "black", "white", "grey", "gray", "silver", "dark", "light",
    "bright", "small", "large", "big", "tiny", "tall", "short", "long", "round", "flat", "metal", "wooden", "plastic",
)  # fmt: skip
_MOST = 800


def mapping_names(vlm: VLM, classes: Sequence[str]) -> list[str]:
    """Names for the maps, the target classes among them: common nouns, and nouns with an adjective.

    Of the small model only names that it has words for count; its vocabulary is small, so most are then an adjective with a noun.

    Args:
        vlm: whose words.
        classes: the target classes.
    """
    nouns = list(dict.fromkeys([*classes, *COMMON_NOUNS]))
    described = [f"{adjective} {noun}" for noun in nouns for adjective in _ADJECTIVES]
    if isinstance(vlm, SmallVLM):
        unknown = vlm.words.unknown
        nouns = [*classes, *(name for name in nouns[len(classes) :] if not unknown([name]))]
        described = [name for name in described if not unknown([name])]
    step = max(1, len(described) // max(_MOST - len(nouns), 1))
    return nouns + described[::step]


def teacher_vectors(teacher: SentenceEncoder, names: Sequence[str]) -> Tensor:
    """(n, D) float32."""
    return torch.from_numpy(np.asarray(teacher.encode(list(names)), np.float32))
