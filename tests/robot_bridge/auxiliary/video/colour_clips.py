"""Clips of four frames: a square that changes its colour, and its twin that does so the other way round; a bundle trained on them."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.video import tempme
from robot_bridge.auxiliary.video.clips import ClipData
from robot_bridge.auxiliary.video.schedule import MergeSchedule
from robot_bridge.auxiliary.video.tempme_config import TempMeConfig
from robot_bridge.auxiliary.vlm.small import SmallVLM
from tests.robot_bridge.auxiliary.tiny_vlm import AverageColours, tiny_vlm

COLOURS = {"red": (230, 30, 30), "green": (30, 220, 30), "blue": (40, 40, 230), "yellow": (220, 220, 30)}
FRAMES, SIDE = 4, 24
SCHEDULE = MergeSchedule(per_frame=2, clip_blocks=(1,), groups=(4,))
CONFIG = TempMeConfig(vlm="tiny", schedule=SCHEDULE, frames=FRAMES, rank=8, lr=0.02, weight_decay=0.0, epochs=60, batch=8, fps=2.0)


def film(first: str, then: str, generator: np.random.Generator, frames: int = FRAMES) -> NDArray[np.uint8]:
    """(frames, SIDE, SIDE, 3): half of the time one colour, then the other."""
    pictures = generator.integers(100, 120, (frames, SIDE, SIDE, 3)).astype(np.uint8)
    for index, picture in enumerate(pictures):
        picture[6:18, 6:18] = COLOURS[first if index < frames / 2 else then]
    return pictures


def says(first: str, then: str) -> str:
    return f"a {first} mug then {then}"


def colour_clips(seed: int = 0, each: int = 2) -> ClipData:
    """All pairs of colours, each `each` times, with their twins."""
    generator = np.random.default_rng(seed)
    pairs = [pair for pair in combinations(COLOURS, 2) for _ in range(each)]
    turns = [turn for pair in pairs for turn in (pair, pair[::-1])]
    return ClipData(
        frames=np.stack([film(*turn, generator) for turn in turns]),
        lengths=np.full(len(turns), FRAMES),
        sentences=tuple((says(*turn), f"{turn[0]} then {turn[1]}") for turn in turns),
        meanings=tuple(says(*turn) for turn in turns),
        groups=np.arange(len(turns)) // 2,
        ordered=np.ones(len(turns), bool),
    )


def tiny_base() -> SmallVLM:
    """Frozen, with the words of the clips."""
    return tiny_vlm(("then",))


def trained(run_dir: Path, **settings: object) -> Bundle:
    """A bundle of TempMe; `tempme.vlm_at` must give `tiny_base`."""
    return tempme.train(colour_clips(), CONFIG.override(**settings), run_dir, seed=0, say=lambda text: None)


def loaded(bundle: Bundle) -> tempme.ClipSearcher:
    torch.manual_seed(7)  # loading must not depend on it
    return tempme.load(bundle, AverageColours())
