"""DeKg: prompts that keep hand-written knowledge and yet do not depend on it (Li et al., ICLR 2025; released code).

    L = CE + w1 L_kg + w2 L_hsic,   L_kg = 1 - mean_i cos(w_i, w_i^clip),   L_hsic = tr(H K_t H K_clip)

Variant `kg` tunes a context for all classes (KgCoOp), `tcp` also makes tokens of each class's hand-written prompt inside the text tower.
Only the classes it was trained on enter the losses; new names are encoded with the same context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.bundle import Bundle
from rl_core.training.seeding import torch_generator
from robot_bridge.auxiliary.bundles import recognition_of
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.recognition.bundled_vlm import vlm_at, vlm_of
from robot_bridge.auxiliary.recognition.class_aware import ClassAwareContext
from robot_bridge.auxiliary.recognition.class_prompts import ClassPrompts, class_logits, template_vectors
from robot_bridge.auxiliary.recognition.class_vectors import OpenVocabularyRecogniser
from robot_bridge.auxiliary.recognition.hsic import HSICForm, hsic
from robot_bridge.auxiliary.recognition.kgcoop import KgCoOpConfig, knowledge_loss
from robot_bridge.auxiliary.recognition.prompt_tuning import Say, Schedule, tune
from robot_bridge.auxiliary.recognition.shared_context import context_bundle, initial_context
from robot_bridge.auxiliary.recognition.shots import chosen_shots, shot_features
from robot_bridge.auxiliary.vlm.interface import VLM

_RANDOM_STD = 0.02


@dataclass(frozen=True, kw_only=True)
class DeKgConfig(KgCoOpConfig):
    """The defaults are variant `kg`'s; preset `tcp` is the other."""

    PRESETS = {"tcp": {"variant": "tcp", "schedule": {"epochs": 100, "optimizer": "adam", "batch_size": 32}}}

    variant: Literal["kg", "tcp"] = "kg"
    """What is tuned: a context for all classes, or one that a network makes for each class [code]."""
    w2: float = 6.0
    """Weight of the independence penalty [code]."""
    hsic: HSICForm = "paper"
    """`paper` as it is published, which is tiny; `cka` between 0 and 1 [here]."""
    schedule: Schedule = Schedule(epochs=100, batch_size=128)
    """Optimiser and rates [code]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_least(w2=0)


@dataclass(frozen=True, kw_only=True, eq=False)
class DeKgPrompts:
    """What was tuned.

    Attributes:
        context: (1, L, width).
        network: of variant `tcp`; None in variant `kg`.
        gradients: size of each weighted loss term's gradient for the context at the end, by name; tells what drives it.
    """

    context: Tensor
    network: ClassAwareContext | None
    gradients: dict[str, float]

    def vectors(self, vlm: VLM, names: Sequence[str], template: str) -> Tensor:
        """Class vectors (C, d), length 1, of any names."""
        with torch.no_grad():
            return _encoder(vlm, names, self.context, self.network, template_vectors(vlm, names, (template,)))()


def fit(
    vlm: VLM,
    features: Tensor,
    labels: Tensor,
    classes: Sequence[str],
    config: DeKgConfig,
    *,
    seed: int = 0,
    say: Say = lambda text: None,
) -> DeKgPrompts:
    """Minimises the loss above. Arguments as in `coop.fit`."""
    generator, frozen = torch_generator(seed, "dekg"), template_vectors(vlm, classes, (config.template,))
    context, network = initial_context(vlm, config.context), None
    if config.variant == "tcp":
        context = nn.Parameter(_RANDOM_STD * torch.randn(context.shape, generator=generator))
        network = ClassAwareContext(vlm, context.shape[1], generator)
    encode = _encoder(vlm, classes, context, network, frozen)

    def terms(batch: Tensor) -> dict[str, Tensor]:
        vectors = encode()
        return {
            "ce": F.cross_entropy(class_logits(features[batch], vectors, vlm.logit_scale), labels[batch]),
            "kg": config.w1 * knowledge_loss(vectors, frozen),
            "hsic": config.w2 * hsic(vectors, frozen, config.hsic),
        }

    def loss(batch: Tensor) -> Tensor:
        found = terms(batch)
        return found["ce"] + found["kg"] + found["hsic"]

    parameters = [context, *(network.parameters() if network is not None else ())]
    tune(parameters, loss, len(labels), config.schedule, torch_generator(seed, "prompts"), say)
    gradients = {}
    for name, term in terms(torch.arange(len(labels))).items():
        gradients[name] = float(torch.autograd.grad(term, context, retain_graph=True)[0].norm())
    if network is not None:
        network.requires_grad_(False)
    return DeKgPrompts(context=context.detach(), network=network, gradients=gradients)


def train(data: ImageData, config: DeKgConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """See `fit`."""
    vlm, shots = vlm_at(config.vlm), chosen_shots(data, config.shots, seed)
    features, labels = shot_features(vlm, shots, run_dir, say)
    prompts = fit(vlm, features, labels, data.classes, config, seed=seed, say=say)
    bundle = context_bundle("dekg", config, vlm, data, prompts.context)
    network = {} if prompts.network is None else {f"network.{name}": tensor for name, tensor in prompts.network.state_dict().items()}
    figures = {f"gradient/{name}": size for name, size in prompts.gradients.items()}
    return replace(bundle, weights={**bundle.weights, **network}, metrics=figures)


def load(bundle: Bundle) -> OpenVocabularyRecogniser:
    """The recogniser of a bundle."""
    vlm, recognition = vlm_of(bundle), recognition_of(bundle)
    config, context, network = recognition.config(DeKgConfig), bundle.weights["context"], None
    if config.variant == "tcp":
        network = ClassAwareContext(vlm, context.shape[1], torch.Generator())
        stored = {name.removeprefix("network."): tensor for name, tensor in bundle.weights.items() if name.startswith("network.")}
        network.load_state_dict(stored)
        network.requires_grad_(False)
    prompts = DeKgPrompts(context=context, network=network, gradients={})
    return OpenVocabularyRecogniser(vlm, recognition.classes, lambda names: prompts.vectors(vlm, names, config.template))


def _encoder(vlm: VLM, names: Sequence[str], context: Tensor, network: ClassAwareContext | None, frozen: Tensor) -> Callable[[], Tensor]:
    prompts = ClassPrompts(vlm, names, context.shape[1])
    return lambda: prompts.encode(context, network.block_input(frozen) if network is not None else None)[:, 0]
