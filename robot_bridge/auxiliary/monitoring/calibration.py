"""From pictures of known objects to a guard: shots, held-out objects, and the threshold that accepts 95 % of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from rl_core.bundle import Bundle
from rl_core.training.config import Config
from robot_bridge.auxiliary.bundles import fingerprint, image_channel, recogniser_bundle
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.monitoring.detection import known_threshold
from robot_bridge.auxiliary.monitoring.guard import Rule
from robot_bridge.auxiliary.recognition.bundled_vlm import with_vlm
from robot_bridge.auxiliary.recognition.prompt_tuning import Say
from robot_bridge.auxiliary.vlm.feature_cache import image_cache
from robot_bridge.auxiliary.vlm.interface import VLM

ACCEPTED = 0.95
"""Share of known pictures that are to be accepted."""


def image_vectors(vlm: VLM, data: ImageData, folder: Path | None, say: Say = lambda text: None) -> tuple[Tensor, Tensor]:
    """Joint vectors (n, d) and local tokens (n, places, d) of all pictures; kept in `folder`."""
    found = image_cache(vlm, folder, tokens=True).features(data.frames, lambda count: say(f"{count} pictures encoded"))
    return torch.from_numpy(found["image"]), torch.from_numpy(found["tokens"])


def known_scores(vlm: VLM, rule: Rule, image: Tensor, tokens: Tensor) -> Tensor:
    """Scores (n,) of vectors, higher = known."""
    with torch.no_grad():
        return rule.judge(image, tokens, vlm.logit_scale.exp()).known


def guard_bundle(
    method: str,
    config: Config,
    weights: Mapping[str, Tensor],
    rule: Rule,
    *,
    vlm: VLM,
    folder: str,
    data: ImageData,
    held: ImageData,
    run_dir: Path,
    say: Say,
) -> Bundle:
    """The bundle of a guard, its threshold set on pictures that were held out. No unknown picture takes part.

    Args:
        method: name in the registry.
        config: its settings.
        weights: its tensors.
        rule: made of them.
        vlm: it works on.
        folder: where that was read from.
        data: all pictures.
        held: those of objects that it was not trained on.
        run_dir: of the run.
        say: told the threshold.
    """
    threshold = known_threshold(known_scores(vlm, rule, *image_vectors(vlm, held, run_dir / "features", say)).numpy(), ACCEPTED)
    say(f"threshold {threshold:.4f} accepts {100 * ACCEPTED:.0f} % of {len(held)} held-out pictures")
    bundle = recogniser_bundle(
        method,
        config,
        weights,
        classes=data.classes,
        camera=image_channel(data.frames.shape),
        data_fingerprint=fingerprint(data),
        calibration={"threshold": threshold},
    )
    return with_vlm(bundle, vlm, folder)
