"""ILC: a linear classifier on the layer that holds best under shift; the network behind it is cut off (arXiv 2504.05461).

Zero-shot: probes are trained on the data alone, and validation pictures from the cell choose layer, epoch and penalty. Few-shot: they are
trained on half of the pictures from the cell. Method `last-layer` is the same on the penultimate layer alone (DFR, arXiv 2204.02937).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.bundle import Bundle
from rl_core.training.config import Config
from rl_core.training.seeding import torch_generator
from robot_bridge.auxiliary.bundles import fingerprint, image_channel, recogniser_bundle, recognition_of
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.image_files import read_images
from robot_bridge.auxiliary.protocols import Prediction
from robot_bridge.auxiliary.recognition.evaluation import known_labels
from robot_bridge.auxiliary.recognition.frozen_layers import EfficientNetLayers, FrozenLayers
from robot_bridge.auxiliary.recognition.probes import Probe, ProbeConfig, fit_probes
from robot_bridge.auxiliary.recognition.prompt_tuning import Say
from robot_bridge.auxiliary.recognition.shift_score import sensitivity
from robot_bridge.auxiliary.recognition.shots import chosen_shots
from robot_bridge.auxiliary.vlm.feature_cache import FeatureCache

_REFERENCE = 256
"""Training samples kept for the shift score."""


@dataclass(frozen=True, kw_only=True)
class ILCConfig(Config):
    """Settings of ILC."""

    shifted: str = ""
    """Folder of labelled pictures from the cell, which choose the layer; empty = a fifth of the data's objects, which know no shift."""
    train_on: Literal["data", "shifted"] = "data"
    """Zero-shot, or few-shot: half of the pictures from the cell train the probes, the other half chooses [paper]."""
    shots: int = 0
    """Pictures of each class to train on; 0 = all there are [here]."""
    pool: int = 4
    """Feature maps are averaged to this many rows and columns; they are far too large otherwise [here]."""
    probe: ProbeConfig = ProbeConfig()
    """How probes are trained."""

    def __post_init__(self) -> None:
        self.require_least(shots=0, pool=1)


def candidates(layers: int) -> range:
    """Indices of the intermediate layers: all but the penultimate one, the last here [paper: l <= L - 2]."""
    return range(layers - 1)


def best_probe(probes: Sequence[Probe], layers: Sequence[int]) -> Probe:
    """The probe of those layers with the highest validation accuracy; of equals the earlier, which is the faster."""
    return max((probes[layer] for layer in layers), key=lambda probe: probe.accuracy)


class ILCRecogniser:
    """A network up to one layer, and a linear classifier.

    `values["shift_score"]`: mean distance of a frame to training frames over the mean distance among those, minus 1 (0 = none the farther).

    Args:
        network: frozen.
        probe: on one of its layers.
        classes: names.
        reference: standardised training features of that layer (m, D).
    """

    def __init__(self, network: FrozenLayers, probe: Probe, classes: Sequence[str], reference: Tensor) -> None:
        self._network, self._probe, self._classes, self._reference = network, probe, tuple(classes), reference

    @property
    def classes(self) -> tuple[str, ...]:
        """See `protocols.Recogniser`."""
        return self._classes

    def predict(self, frames: NDArray[np.uint8], condition: Mapping[str, Any] | None = None) -> Prediction:
        """See `protocols.Recogniser`."""
        features = self._network.features(frames, self._probe.layer)[-1]
        scores = torch.softmax(self._probe.logits(features), dim=-1).numpy()
        moved = [sensitivity(self._reference, row[None]) for row in self._probe.standardised(features)]
        return Prediction(scores=scores, values={"shift_score": np.array(moved, np.float32)})


def train(data: ImageData, config: ILCConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """Probes on the intermediate layers; the best is kept."""
    return _train("ilc", data, config, run_dir, seed, say)


def train_last_layer(data: ImageData, config: ILCConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """The baseline: a probe on the penultimate layer, trained and chosen the same way."""
    return _train("last-layer", data, config, run_dir, seed, say)


def load(bundle: Bundle) -> ILCRecogniser:
    """The recogniser of a bundle of `ilc` or `last-layer`."""
    recognition = recognition_of(bundle)
    weights, facts = bundle.weights, recognition.calibration
    probe = Probe(
        layer=int(facts["layer"]),
        weight=weights["weight"],
        bias=weights["bias"],
        mean=weights["mean"],
        std=weights["std"],
        accuracy=facts["validation_accuracy"],
        rate=facts["rate"],
        strength=facts["strength"],
        epoch=int(facts["epoch"]),
    )
    network = EfficientNetLayers(recognition.config(ILCConfig).pool)
    return ILCRecogniser(network, probe, recognition.classes, bundle.arrays["reference"])


def _train(method: str, data: ImageData, config: ILCConfig, run_dir: Path, seed: int, say: Say) -> Bundle:
    network = EfficientNetLayers(config.pool)
    training, validation = _parts(data, config, seed)
    layers, labels = layer_features(network, training, run_dir / "features", say), known_labels(data.classes, training)
    held = layer_features(network, validation, run_dir / "features", say)
    wanted = list(candidates(len(network.names))) if method == "ilc" else [len(network.names) - 1]
    probes = fit_probes(
        layers,
        torch.from_numpy(labels),
        held,
        torch.from_numpy(known_labels(data.classes, validation)),
        config.probe,
        classes=len(data.classes),
        seed=seed,
    )
    say("validation accuracy: " + ", ".join(f"{network.names[probe.layer]} {probe.accuracy:.3f}" for probe in probes))
    probe = best_probe(probes, wanted)
    chosen = torch.randperm(len(labels), generator=torch_generator(seed, "reference"))[:_REFERENCE]
    return recogniser_bundle(
        method,
        config,
        {"weight": probe.weight, "bias": probe.bias, "mean": probe.mean, "std": probe.std},
        classes=data.classes,
        camera=image_channel(data.frames.shape),
        data_fingerprint=fingerprint(data),
        calibration={
            "layer": probe.layer,
            "validation_accuracy": probe.accuracy,
            "rate": probe.rate,
            "strength": probe.strength,
            "epoch": probe.epoch,
        },
        arrays={"reference": probe.standardised(layers[probe.layer][chosen])},
        metrics={f"validation/{network.names[probe.layer]}": probe.accuracy for probe in probes},
    )


def layer_features(network: FrozenLayers, data: ImageData, folder: Path | None, say: Say = lambda text: None) -> list[Tensor]:
    """Features (n, D_l) of every layer, float32; kept in `folder` as float16."""

    def encode(frames: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        return {f"layer{index}": layer.half().numpy() for index, layer in enumerate(network.features(frames))}

    found = FeatureCache(folder, network.identity, encode).features(data.frames, lambda count: say(f"{count} pictures encoded"))
    return [torch.from_numpy(found[f"layer{index}"]).float() for index in range(len(network.names))]


def _parts(data: ImageData, config: ILCConfig, seed: int) -> tuple[ImageData, ImageData]:
    """Pictures to train on and pictures that choose."""
    if not config.shifted:
        training, validation = data.split((0.8, 0.2), seed)
        return chosen_shots(training, config.shots, seed), validation
    cell = read_images(config.shifted, side=data.frames.shape[1])
    if config.train_on == "data":
        return chosen_shots(data, config.shots, seed), cell
    training, validation = cell.split((0.5, 0.5), seed)
    return chosen_shots(training, config.shots, seed), validation
