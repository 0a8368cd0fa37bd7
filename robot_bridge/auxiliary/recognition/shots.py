"""The labelled shots that a method is trained on, and their features."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.recognition.prompt_tuning import Say
from robot_bridge.auxiliary.vlm.feature_cache import image_cache
from robot_bridge.auxiliary.vlm.interface import VLM


def chosen_shots(data: ImageData, shots: int, seed: int) -> ImageData:
    """`shots` pictures of each class; all of them for 0."""
    return data.few_shot(shots, seed) if shots else data


def shot_features(vlm: VLM, data: ImageData, run_dir: Path, say: Say) -> tuple[Tensor, Tensor]:
    """Joint vectors (n, d) and labels (n,) of all pictures; worked out once for a run's folder."""
    found = image_cache(vlm, run_dir / "features").features(data.frames, lambda count: say(f"{count} pictures encoded"))
    return torch.from_numpy(found["image"]), torch.from_numpy(data.labels)
