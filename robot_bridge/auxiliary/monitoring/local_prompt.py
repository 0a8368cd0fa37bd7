"""Local-Prompt: a guard for unknown and damaged objects, tuned on a few pictures of known ones (arXiv 2409.04796; released code).

Frozen global prompts "a photo of a {c}."; trained are a local context for each class and negative prompts that name nothing. Of random
crops of a picture those most like its label are positive, the one least like it is negative:

    L = L_pos + lambda_neg L_neg + lambda_div L_div          see `local_prompt_losses`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.bundle import Bundle
from rl_core.training.config import Config, ConfigError
from rl_core.training.seeding import torch_generator
from robot_bridge.auxiliary.bundles import recognition_of
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.monitoring.calibration import guard_bundle
from robot_bridge.auxiliary.monitoring.crops import random_crops
from robot_bridge.auxiliary.monitoring.guard import GuardRecogniser, LocalPrompts
from robot_bridge.auxiliary.monitoring.local_prompt_losses import diversity_loss, negative_loss, positive_loss
from robot_bridge.auxiliary.recognition.bundled_vlm import vlm_at, vlm_of
from robot_bridge.auxiliary.recognition.class_prompts import template_vectors
from robot_bridge.auxiliary.recognition.prompt_tuning import Say, Schedule, tune
from robot_bridge.auxiliary.recognition.shots import chosen_shots
from robot_bridge.auxiliary.vlm.feature_cache import image_cache
from robot_bridge.auxiliary.vlm.interface import VLM
from robot_bridge.auxiliary.vlm.prompts import assemble

_RANDOM_STD = 0.02


@dataclass(frozen=True, kw_only=True)
class LocalPromptConfig(Config):
    """Settings of Local-Prompt; numbers of prompts and regions are for 10-20 classes, not for the paper's thousand."""

    vlm: str = ""
    """Folder of the VLM: a bundle of the small one, or a CLIP with its tokenizer."""
    shots: int = 0
    """Pictures of each class to train on; 0 = all that are not held out [here; paper: 1-16]."""
    templates: tuple[str, ...] = ("a photo of a {}.",)
    """Global prompts, {} for the name; the vectors of several are averaged [code]."""
    n_ctx: int = 16
    """Context vectors of a local or negative prompt [code]."""
    n_neg: int = 20
    """Negative prompts, two or more [here; 300 in the code would swamp a few classes]."""
    crops: int = 16
    """Random crops of each picture [code]."""
    positives: int = 8
    """Crops most like the label that are positive; the one least like it is the negative [code]."""
    k_train: int = 8
    """Regions that count in the losses [here; 20-50 of 196 in the code]."""
    k_test: int = 10
    """Regions that count in the score [code]."""
    lambda_neg: float = 5.0
    """Weight of L_neg [code]."""
    lambda_div: float = 0.5
    """Weight of L_div [code]."""
    temperature: float = 1.0
    """T of the score's softmax over raw cosines [code]."""
    held_out: float = 0.3
    """Share of each class's objects whose pictures set the threshold [here]."""
    schedule: Schedule = Schedule(epochs=30, batch_size=256)
    """Optimiser and rates [code]; the last epoch counts."""

    def __post_init__(self) -> None:
        self.require_least(shots=0, n_ctx=1, n_neg=2, crops=2, positives=1, k_train=1, k_test=1, lambda_neg=0, lambda_div=0)
        self.require_above_zero("temperature")
        if self.positives >= self.crops:
            raise ConfigError(f"LocalPromptConfig.positives: {self.positives}, valid: fewer than crops ({self.crops})")
        if not 0 < self.held_out < 1:
            raise ConfigError(f"LocalPromptConfig.held_out: {self.held_out}, valid: above 0, below 1")


@dataclass(frozen=True, kw_only=True, eq=False)
class SortedCrops:
    """Tokens (length 1) of the crops of n pictures: `positive` (n, P, places, d), `negative` (n, places, d), and `labels` (n,)."""

    positive: Tensor
    negative: Tensor
    labels: Tensor


def crop_vectors(vlm: VLM, data: ImageData, crops: int, folder: Path | None, say: Say = lambda text: None) -> tuple[Tensor, Tensor]:
    """Joint vectors (n, crops, d) and tokens (n, crops, places, d) of random crops; kept in `folder`."""
    frames = np.concatenate([random_crops(frame, crops) for frame in data.frames])
    found = image_cache(vlm, folder, tokens=True).features(frames, lambda count: say(f"{count} crops encoded"))
    return tuple(torch.from_numpy(found[name]).unflatten(0, (len(data), crops)) for name in ("image", "tokens"))  # type: ignore[return-value]


def sort_crops(image: Tensor, tokens: Tensor, labels: Tensor, texts: Tensor, positives: int) -> SortedCrops:
    """Global-prompt-guided sorting: by cosine of a crop's vector with the frozen global prompt of its true label.

    Args:
        image: vectors of the crops (n, crops, d).
        tokens: their tokens (n, crops, places, d).
        labels: (n,).
        texts: global prompts (C, d), length 1.
        positives: P.
    """
    alike = (F.normalize(image, dim=-1) * texts[labels][:, None]).sum(dim=-1)
    order, rows = alike.argsort(dim=1, descending=True), torch.arange(len(labels))
    regions = F.normalize(tokens, dim=-1)
    return SortedCrops(positive=regions[rows[:, None], order[:, :positives]], negative=regions[rows, order[:, -1]], labels=labels)


def fit(
    vlm: VLM,
    crops: SortedCrops,
    classes: Sequence[str],
    config: LocalPromptConfig,
    *,
    seed: int = 0,
    say: Say = lambda text: None,
) -> LocalPrompts:
    """Minimises the loss above. Every positive crop is a sample of its own, with the negative crop of its picture.

    Args:
        vlm: frozen.
        crops: of the shots.
        classes: names.
        config: settings.
        seed: of initial contexts and batches.
        say: told the loss now and then.
    """
    generator = torch_generator(seed, "contexts")
    shape = (config.n_ctx, vlm.text_width)
    local = nn.Parameter(_RANDOM_STD * torch.randn(len(classes), *shape, generator=generator))
    negative = nn.Parameter(_RANDOM_STD * torch.randn(config.n_neg, *shape, generator=generator))
    named, nameless = assemble(vlm, classes, config.n_ctx), assemble(vlm, [""] * config.n_neg, config.n_ctx)
    scale, positives = vlm.logit_scale.exp(), crops.positive.shape[1]

    def loss(batch: Tensor) -> Tensor:
        picture, labels = batch // positives, crops.labels[batch // positives]
        of_class, of_none = F.normalize(named.encode(vlm, local), dim=-1), F.normalize(nameless.encode(vlm, negative), dim=-1)
        seen, beside = crops.positive[picture, batch % positives], crops.negative[picture]
        # L_pos: the positive crop's regions belong to the label, not to other classes nor to negative prompts.
        total = positive_loss(scale * seen @ of_class.T, scale * seen @ of_none.T, labels, config.k_train)
        # L_neg: the negative crop's regions, even those that look like the label, belong to the negative prompts.
        total = total + config.lambda_neg * negative_loss(scale * beside @ of_class.T, scale * beside @ of_none.T, labels, config.k_train)
        # L_div: negative prompts differ from each other.
        return total + config.lambda_div * diversity_loss(of_none)

    tune([local, negative], loss, crops.positive.shape[0] * positives, config.schedule, torch_generator(seed, "prompts"), say)
    with torch.no_grad():
        return LocalPrompts(
            whole=template_vectors(vlm, classes, config.templates),
            local=F.normalize(named.encode(vlm, local), dim=-1),
            negative=F.normalize(nameless.encode(vlm, negative), dim=-1),
            k=config.k_test,
            temperature=config.temperature,
        )


def train(data: ImageData, config: LocalPromptConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """See `fit`; pictures of objects that are held out set the threshold."""
    vlm = vlm_at(config.vlm)
    seen, held = data.split((1 - config.held_out, config.held_out), seed)
    shots = chosen_shots(seen, config.shots, seed)
    image, tokens = crop_vectors(vlm, shots, config.crops, run_dir / "features", say)
    texts = template_vectors(vlm, data.classes, config.templates)
    crops = sort_crops(image, tokens, torch.from_numpy(shots.labels), texts, config.positives)
    rule = fit(vlm, crops, data.classes, config, seed=seed, say=say)
    weights = {"whole": rule.whole, "local": rule.local, "negative": rule.negative}
    places = {"vlm": vlm, "folder": config.vlm, "data": data, "held": held, "run_dir": run_dir, "say": say}
    return guard_bundle("local-prompt", config, weights, rule, **places)  # type: ignore[arg-type]


def load(bundle: Bundle) -> GuardRecogniser:
    """The guard of a bundle."""
    recognition, weights = recognition_of(bundle), bundle.weights
    config = recognition.config(LocalPromptConfig)
    rule = LocalPrompts(
        whole=weights["whole"],
        local=weights["local"],
        negative=weights["negative"],
        k=config.k_test,
        temperature=config.temperature,
    )
    return GuardRecogniser(vlm_of(bundle), recognition.classes, rule, recognition.calibration["threshold"])
