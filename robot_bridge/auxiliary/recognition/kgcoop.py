"""KgCoOp, a baseline: CoOp whose class vectors are pulled to those of hand-written prompts (arXiv 2303.13283)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor
from torch.nn import functional as F

from rl_core.bundle import Bundle
from rl_core.training.seeding import torch_generator
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.recognition.bundled_vlm import vlm_at
from robot_bridge.auxiliary.recognition.class_prompts import ClassPrompts, class_logits, template_vectors
from robot_bridge.auxiliary.recognition.prompt_tuning import Say, tune
from robot_bridge.auxiliary.recognition.shared_context import ContextConfig, context_bundle, initial_context, load_context
from robot_bridge.auxiliary.recognition.shots import chosen_shots, shot_features
from robot_bridge.auxiliary.vlm.interface import VLM


@dataclass(frozen=True, kw_only=True)
class KgCoOpConfig(ContextConfig):
    """Settings of KgCoOp."""

    w1: float = 8.0
    """Weight of the pull towards hand-written prompts [paper]."""
    template: str = "a photo of a {}."
    """The hand-written prompt, {} for the name [paper: one for each data set]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_least(w1=0)


def knowledge_loss(vectors: Tensor, frozen: Tensor) -> Tensor:
    """L_kg = 1 - mean_i cos(w_i, w_i^clip), class vectors (C, d) each."""
    return 1 - F.cosine_similarity(vectors, frozen, dim=-1).mean()


def fit(
    vlm: VLM,
    features: Tensor,
    labels: Tensor,
    classes: Sequence[str],
    config: KgCoOpConfig,
    *,
    seed: int = 0,
    say: Say = lambda text: None,
) -> Tensor:
    """Context vectors (1, L, width) that minimise  L = CE + w1 L_kg.  Arguments as in `coop.fit`."""
    context = initial_context(vlm, config.context)
    prompts = ClassPrompts(vlm, classes, context.shape[1])
    frozen = template_vectors(vlm, classes, (config.template,))

    def loss(batch: Tensor) -> Tensor:
        vectors = prompts.encode(context)[:, 0]
        fits = F.cross_entropy(class_logits(features[batch], vectors, vlm.logit_scale), labels[batch])
        return fits + config.w1 * knowledge_loss(vectors, frozen)

    tune([context], loss, len(labels), config.schedule, torch_generator(seed, "prompts"), say)
    return context.detach()


def train(data: ImageData, config: KgCoOpConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """See `fit`."""
    vlm, shots = vlm_at(config.vlm), chosen_shots(data, config.shots, seed)
    features, labels = shot_features(vlm, shots, run_dir, say)
    return context_bundle("kgcoop", config, vlm, data, fit(vlm, features, labels, data.classes, config, seed=seed, say=say))


load = load_context
