"""The baseline without texts: logistic regression on a VLM's image vectors (CLIP, arXiv 2103.00020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.bundle import Bundle
from rl_core.training.config import Config
from robot_bridge.auxiliary.bundles import fingerprint, image_channel, recogniser_bundle, recognition_of
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.protocols import Prediction
from robot_bridge.auxiliary.recognition.bundled_vlm import vlm_at, vlm_of, with_vlm
from robot_bridge.auxiliary.recognition.class_vectors import encode_frames
from robot_bridge.auxiliary.recognition.prompt_tuning import Say
from robot_bridge.auxiliary.recognition.shots import chosen_shots, shot_features
from robot_bridge.auxiliary.vlm.interface import VLM


@dataclass(frozen=True, kw_only=True)
class LinearProbeConfig(Config):
    """Settings of the linear probe."""

    vlm: str = ""
    """Folder of the VLM: a bundle of the small one, or a CLIP with its tokenizer."""
    shots: int = 0
    """Pictures of each class to train on; 0 = all there are [here]."""
    strength: float = 1e-4
    """Weight of ||W||^2 [here; CLIP sweeps it]."""
    iterations: int = 200
    """Most iterations of L-BFGS [CLIP: 1000]."""

    def __post_init__(self) -> None:
        self.require_least(shots=0, strength=0, iterations=1)


def fit(features: Tensor, labels: Tensor, classes: int, config: LinearProbeConfig) -> tuple[Tensor, Tensor]:
    """W (C, d) and b (C,) that minimise  CE(W f + b, y) + strength ||W||^2  on vectors f (n, d) of length sqrt(d)."""
    inputs = _scaled(features)
    weight, bias = nn.Parameter(torch.zeros(classes, features.shape[1])), nn.Parameter(torch.zeros(classes))
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=config.iterations, line_search_fn="strong_wolfe")

    def objective() -> Tensor:
        optimizer.zero_grad()
        value = F.cross_entropy(F.linear(inputs, weight, bias), labels) + config.strength * weight.square().sum()
        value.backward()
        return value

    optimizer.step(objective)  # type: ignore[arg-type]  # torch types the closure as one that gives a float
    return weight.detach(), bias.detach()


def probe_logits(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(n, C) of image vectors (n, d)."""
    return F.linear(_scaled(features), weight, bias)


class LinearProbeRecogniser:
    """See the module.

    Args:
        vlm: whose image vectors.
        classes: names.
        weight: (C, d).
        bias: (C,).
    """

    def __init__(self, vlm: VLM, classes: Sequence[str], weight: Tensor, bias: Tensor) -> None:
        self._vlm, self._classes, self._weight, self._bias = vlm, tuple(classes), weight, bias

    @property
    def classes(self) -> tuple[str, ...]:
        """See `protocols.Recogniser`."""
        return self._classes

    def predict(self, frames: NDArray[np.uint8], condition: Mapping[str, Any] | None = None) -> Prediction:
        """See `protocols.Recogniser`."""
        logits = probe_logits(encode_frames(self._vlm, frames), self._weight, self._bias)
        return Prediction(scores=torch.softmax(logits, dim=-1).numpy())


def train(data: ImageData, config: LinearProbeConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """See `fit`."""
    vlm, shots = vlm_at(config.vlm), chosen_shots(data, config.shots, seed)
    weight, bias = fit(*shot_features(vlm, shots, run_dir, say), len(data.classes), config)
    weights = {"weight": weight, "bias": bias}
    bundle = recogniser_bundle(
        "linear-probe", config, weights, classes=data.classes, camera=image_channel(data.frames.shape), data_fingerprint=fingerprint(data)
    )
    return with_vlm(bundle, vlm, config.vlm)


def load(bundle: Bundle) -> LinearProbeRecogniser:
    """The recogniser of a bundle."""
    return LinearProbeRecogniser(vlm_of(bundle), recognition_of(bundle).classes, bundle.weights["weight"], bundle.weights["bias"])


def _scaled(features: Tensor) -> Tensor:
    return F.normalize(features, dim=-1) * features.shape[1] ** 0.5
