"""What CoOp, KgCoOp and DeKg have in common: one context for all classes, which makes a class vector of any name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rl_core.bundle import Bundle
from rl_core.training.config import Config
from robot_bridge.auxiliary.bundles import fingerprint, image_channel, recogniser_bundle, recognition_of
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.recognition.bundled_vlm import vlm_of, with_vlm
from robot_bridge.auxiliary.recognition.class_prompts import ClassPrompts
from robot_bridge.auxiliary.recognition.class_vectors import OpenVocabularyRecogniser
from robot_bridge.auxiliary.recognition.prompt_tuning import Schedule
from robot_bridge.auxiliary.vlm.interface import VLM
from robot_bridge.auxiliary.vlm.prompts import context_of


@dataclass(frozen=True, kw_only=True)
class ContextConfig(Config):
    """What is tuned, and on what."""

    vlm: str = ""
    """Folder of the VLM: a bundle of the small one, or a CLIP with its tokenizer."""
    shots: int = 0
    """Pictures of each class to train on; 0 = all there are [here]."""
    context: str = "a photo of a"
    """Words whose embeddings the context vectors begin with; their number is that of the vectors [code]."""
    schedule: Schedule = Schedule()
    """Optimiser and rates."""

    def __post_init__(self) -> None:
        self.require_least(shots=0)


def initial_context(vlm: VLM, words: str) -> nn.Parameter:
    """Context vectors (1, L, width) that start as the embeddings of `words`."""
    return nn.Parameter(context_of(vlm, words)[None])


def context_vectors(vlm: VLM, context: Tensor, names: Sequence[str]) -> Tensor:
    """Class vectors (C, d), length 1, of any names under a learned context (1, L, width)."""
    with torch.no_grad():
        return ClassPrompts(vlm, names, context.shape[1]).encode(context)[:, 0]


def context_bundle(method: str, config: ContextConfig, vlm: VLM, data: ImageData, context: Tensor) -> Bundle:
    """The bundle of a learned context."""
    weights = {"context": context.detach()}
    bundle = recogniser_bundle(
        method, config, weights, classes=data.classes, camera=image_channel(data.frames.shape), data_fingerprint=fingerprint(data)
    )
    return with_vlm(bundle, vlm, config.vlm)


def load_context(bundle: Bundle) -> OpenVocabularyRecogniser:
    """The recogniser of a bundle that `context_bundle` made."""
    vlm, context = vlm_of(bundle), bundle.weights["context"]
    return OpenVocabularyRecogniser(vlm, recognition_of(bundle).classes, lambda names: context_vectors(vlm, context, names))
