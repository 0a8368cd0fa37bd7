"""The baseline of every prompt: a VLM with hand-written prompts, nothing trained (CLIP, arXiv 2103.00020)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rl_core.bundle import Bundle
from rl_core.training.config import Config
from robot_bridge.auxiliary.bundles import fingerprint, image_channel, recogniser_bundle, recognition_of
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.recognition.bundled_vlm import vlm_at, vlm_of, with_vlm
from robot_bridge.auxiliary.recognition.class_prompts import template_vectors
from robot_bridge.auxiliary.recognition.class_vectors import OpenVocabularyRecogniser
from robot_bridge.auxiliary.recognition.prompt_tuning import Say


@dataclass(frozen=True, kw_only=True)
class ZeroShotConfig(Config):
    """Prompts by hand."""

    vlm: str = ""
    """Folder of the VLM: a bundle of the small one, or a CLIP with its tokenizer."""
    templates: tuple[str, ...] = ("a photo of a {}.",)
    """Prompts, {} for the name; the vectors of several are averaged [CLIP]."""


def train(data: ImageData, config: ZeroShotConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """Keeps the data's class names with the VLM; pictures and seed take no part."""
    vlm = vlm_at(config.vlm)
    vectors = template_vectors(vlm, data.classes, config.templates)
    bundle = recogniser_bundle(
        "zero-shot",
        config,
        {"vectors": vectors},
        classes=data.classes,
        camera=image_channel(data.frames.shape),
        data_fingerprint=fingerprint(data),
    )
    return with_vlm(bundle, vlm, config.vlm)


def load(bundle: Bundle) -> OpenVocabularyRecogniser:
    """The recogniser of a bundle."""
    vlm, recognition = vlm_of(bundle), recognition_of(bundle)
    templates = recognition.config(ZeroShotConfig).templates
    return OpenVocabularyRecogniser(vlm, recognition.classes, lambda names: template_vectors(vlm, names, templates))
