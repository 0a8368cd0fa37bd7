"""DeMul: several prompts a class, weighted, that learn what a text teacher knows of the class's name (arXiv 2507.07147).

    t_ij = [v_j1 .. v_jL, name_i]          contexts are shared by the classes, weights are not
    T_i  = sum_j w_ij g(t_ij) / ||g(t_ij)||,  sum_j w_ij = 1
    L    = CE(softmax_i(exp(scale) cos(f(x), T_i)), y) + alpha L_dist + lambda (1/N) sum_ij |W_ij|

No text is written by a language model, and none is needed when it runs: T is fixed, and a frame costs what it costs zero-shot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.bundle import Bundle
from rl_core.models.language import SentenceEncoder, sentence_encoder
from rl_core.training.seeding import torch_generator
from robot_bridge.auxiliary.bundles import fingerprint, image_channel, recogniser_bundle, recognition_of
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.recognition.bundled_vlm import vlm_at, vlm_of, with_vlm
from robot_bridge.auxiliary.recognition.class_prompts import ClassPrompts, class_logits, template_vectors
from robot_bridge.auxiliary.recognition.class_vectors import ClassVectorRecogniser
from robot_bridge.auxiliary.recognition.demul_mapping import CycleMaps, MappingConfig, distillation_loss, fit_maps
from robot_bridge.auxiliary.recognition.errors import RecognitionError
from robot_bridge.auxiliary.recognition.prompt_tuning import Say, tune
from robot_bridge.auxiliary.recognition.shared_context import ContextConfig
from robot_bridge.auxiliary.recognition.shots import chosen_shots, shot_features
from robot_bridge.auxiliary.recognition.text_teacher import mapping_names, teacher_vectors
from robot_bridge.auxiliary.vlm.interface import VLM
from robot_bridge.auxiliary.vlm.prompts import context_of

_ALIVE = 1e-6
"""Added to every weight: where all of a class's are 0, they are equal again."""


@dataclass(frozen=True, kw_only=True)
class DeMulConfig(ContextConfig):
    """Settings of DeMul. The paper publishes no values of alpha, lambda and M."""

    prompts: int = 4
    """Contexts M [here; 5 in a figure]."""
    noise: float = 0.02
    """Deviation of the noise on the first context vectors, so that the M prompts do not collapse [here]."""
    alpha: float = 1.0
    """Weight of the distillation [here]; 0 = prompts without a teacher."""
    sparsity: float = 1e-3
    """lambda, weight of the prompt weights' size before they are normalised [here]."""
    weighting: bool = True
    """Learn the prompts' weights; otherwise all are equal."""
    template: str = "a photo of a {}."
    """g(name) is the vector of this prompt, {} for the name: a VLM trained on sentences knows no bare words [here]."""
    mapping: MappingConfig = MappingConfig()
    """The maps between the spaces."""
    least_cosine: float = 0.5
    """Below this mean cosine on names that were held out, phi has learnt names by heart and is refused [here]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_least(prompts=1, noise=0, alpha=0, sparsity=0, least_cosine=-1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Teacher:
    """What prompts are distilled from.

    Attributes:
        maps: frozen phi and psi.
        embeddings: e_i of the classes, centred, length 1, (N, D).
        names: g(name_i), (N, d).
    """

    maps: CycleMaps
    embeddings: Tensor
    names: Tensor

    def shuffled(self, order: Tensor) -> Teacher:
        """The same maps with the meanings exchanged among the classes: a regulariser without the semantics."""
        return replace(self, embeddings=self.embeddings[order], names=self.names[order])


def make_teacher(vlm: VLM, classes: Sequence[str], config: DeMulConfig, seed: int, encoder: SentenceEncoder | None = None) -> Teacher:
    """Fits the maps on names and embeds the classes.

    Args:
        vlm: frozen.
        classes: names.
        config: mapping and threshold.
        seed: of the maps.
        encoder: the teacher; None = MiniLM, whose weights a package brings.

    Raises:
        RecognitionError: phi does not know names that it was not fitted on.
        LanguageError: no encoder is given and the package is not installed.
    """
    encoder = encoder or sentence_encoder()
    names = mapping_names(vlm, classes)
    joint = torch.cat([template_vectors(vlm, names[at : at + 64], (config.template,)) for at in range(0, len(names), 64)])
    maps = fit_maps(joint, teacher_vectors(encoder, names), config.mapping, seed)
    if maps.held_out_cosine < config.least_cosine:
        raise RecognitionError(
            f"phi reaches cosine {maps.held_out_cosine:.2f} on held-out names of {len(names)}, below least_cosine {config.least_cosine}; "
            "valid: a VLM that knows more words, a lower least_cosine, or alpha 0 for prompts without a teacher"
        )
    return Teacher(maps=maps, embeddings=maps.target(teacher_vectors(encoder, classes)), names=joint[: len(classes)])


@dataclass(frozen=True, kw_only=True, eq=False)
class DeMulPrompts:
    """What was tuned: contexts (M, L, width), weights (N, M) of sum 1, class vectors T (N, d)."""

    contexts: Tensor
    weights: Tensor
    vectors: Tensor


def fit(
    vlm: VLM,
    features: Tensor,
    labels: Tensor,
    classes: Sequence[str],
    config: DeMulConfig,
    teacher: Teacher | None,
    *,
    seed: int = 0,
    say: Say = lambda text: None,
) -> DeMulPrompts:
    """Minimises the loss above.

    Args:
        vlm: frozen.
        features: f(x), (n, d).
        labels: (n,).
        classes: names.
        config: settings.
        teacher: of `make_teacher`; needed where alpha is above 0.
        seed: of noise and batches.
        say: told the loss now and then.

    Raises:
        RecognitionError: alpha is above 0 and there is no teacher.
    """
    if config.alpha > 0 and teacher is None:
        raise RecognitionError(f"alpha is {config.alpha} without a teacher; valid: a teacher, or alpha 0")
    start = context_of(vlm, config.context)
    noise = torch.randn(config.prompts, *start.shape, generator=torch_generator(seed, "contexts"))
    contexts = nn.Parameter(start + config.noise * noise)
    sizes = nn.Parameter(torch.ones(len(classes), config.prompts), requires_grad=config.weighting)
    prompts = ClassPrompts(vlm, classes, start.shape[0], config.prompts)

    def loss(batch: Tensor) -> Tensor:
        encoded = prompts.encode(contexts)
        vectors = class_vectors(encoded, prompt_weights(sizes))
        total = F.cross_entropy(class_logits(features[batch], vectors, vlm.logit_scale), labels[batch])
        if config.alpha > 0 and teacher is not None:
            total = total + config.alpha * distillation_loss(teacher.maps, encoded, teacher.embeddings, teacher.names)
        if config.weighting:
            total = total + config.sparsity * sizes.abs().sum() / len(sizes)
        return total

    tuned = [contexts, sizes] if config.weighting else [contexts]
    tune(tuned, loss, len(labels), config.schedule, torch_generator(seed, "prompts"), say)
    with torch.no_grad():
        weights = prompt_weights(sizes)
        return DeMulPrompts(contexts=contexts.detach(), weights=weights, vectors=class_vectors(prompts.encode(contexts), weights))


def prompt_weights(sizes: Tensor) -> Tensor:
    """w (N, M) with sum_j w_ij = 1, of free sizes: ReLU, then normalised. An L1 penalty on softmax outputs would be constant."""
    positive = sizes.relu() + _ALIVE
    return positive / positive.sum(dim=1, keepdim=True)


def class_vectors(encoded: Tensor, weights: Tensor) -> Tensor:
    """T_i = sum_j w_ij g(t_ij): (N, d) of prompts (N, M, d) and weights (N, M)."""
    return (weights[:, :, None] * encoded).sum(dim=1)


def train(data: ImageData, config: DeMulConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """See `fit`."""
    vlm, shots = vlm_at(config.vlm), chosen_shots(data, config.shots, seed)
    features, labels = shot_features(vlm, shots, run_dir, say)
    teacher = make_teacher(vlm, data.classes, config, seed) if config.alpha > 0 else None
    found = fit(vlm, features, labels, data.classes, config, teacher, seed=seed, say=say)
    say("weights of the prompts, largest a class: " + ", ".join(f"{size:.2f}" for size in found.weights.amax(dim=1).tolist()))
    bundle = recogniser_bundle(
        "demul",
        config,
        {"contexts": found.contexts, "prompt_weights": found.weights, "vectors": found.vectors},
        classes=data.classes,
        camera=image_channel(data.frames.shape),
        data_fingerprint=fingerprint(data),
        metrics={"held_out_cosine": teacher.maps.held_out_cosine} if teacher is not None else {},
    )
    return with_vlm(bundle, vlm, config.vlm)


def load(bundle: Bundle) -> ClassVectorRecogniser:
    """The recogniser of a bundle."""
    return ClassVectorRecogniser(vlm_of(bundle), recognition_of(bundle).classes, bundle.weights["vectors"])
