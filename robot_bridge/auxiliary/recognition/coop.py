"""CoOp, a baseline: context vectors tuned by cross-entropy alone (arXiv 2109.01134)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor
from torch.nn import functional as F

from rl_core.bundle import Bundle
from rl_core.training.seeding import torch_generator
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.recognition.bundled_vlm import vlm_at
from robot_bridge.auxiliary.recognition.class_prompts import ClassPrompts, class_logits
from robot_bridge.auxiliary.recognition.prompt_tuning import Say, tune
from robot_bridge.auxiliary.recognition.shared_context import ContextConfig, context_bundle, initial_context, load_context
from robot_bridge.auxiliary.recognition.shots import chosen_shots, shot_features
from robot_bridge.auxiliary.vlm.interface import VLM


class CoOpConfig(ContextConfig):
    """The context and the schedule; see `ContextConfig`."""


def fit(
    vlm: VLM,
    features: Tensor,
    labels: Tensor,
    classes: Sequence[str],
    config: ContextConfig,
    *,
    seed: int = 0,
    say: Say = lambda text: None,
) -> Tensor:
    """Context vectors (1, L, width) that minimise  L = CE(softmax_i(exp(scale) cos(f(x), w_i)), y),  w_i = g([ctx, name_i]).

    Args:
        vlm: frozen.
        features: f(x), (n, d).
        labels: (n,).
        classes: names.
        config: of CoOp, or of a method that begins the same.
        seed: of batches.
        say: told the loss now and then.
    """
    context = initial_context(vlm, config.context)
    prompts = ClassPrompts(vlm, classes, context.shape[1])

    def loss(batch: Tensor) -> Tensor:
        vectors = prompts.encode(context)[:, 0]
        return F.cross_entropy(class_logits(features[batch], vectors, vlm.logit_scale), labels[batch])

    tune([context], loss, len(labels), config.schedule, torch_generator(seed, "prompts"), say)
    return context.detach()


def train(data: ImageData, config: CoOpConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """See `fit`."""
    vlm, shots = vlm_at(config.vlm), chosen_shots(data, config.shots, seed)
    features, labels = shot_features(vlm, shots, run_dir, say)
    return context_bundle("coop", config, vlm, data, fit(vlm, features, labels, data.classes, config, seed=seed, say=say))


load = load_context
