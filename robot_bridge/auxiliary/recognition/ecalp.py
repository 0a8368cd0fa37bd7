"""ECALP: a labeller that adapts to what it sees, without gradients (arXiv 2412.18303). The method itself is `label_graph`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.bundles import fingerprint, image_channel, recogniser_bundle, recognition_of
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.protocols import Prediction
from robot_bridge.auxiliary.recognition.bundled_vlm import vlm_at, vlm_of, with_vlm
from robot_bridge.auxiliary.recognition.class_prompts import template_vectors
from robot_bridge.auxiliary.recognition.class_vectors import encode_frames
from robot_bridge.auxiliary.recognition.ecalp_config import ECALPConfig
from robot_bridge.auxiliary.recognition.evaluation import accuracies, known_labels, milliseconds
from robot_bridge.auxiliary.recognition.label_graph import LabelGraph
from robot_bridge.auxiliary.recognition.prompt_tuning import Say
from robot_bridge.auxiliary.recognition.shots import chosen_shots, shot_features
from robot_bridge.auxiliary.vlm.interface import VLM


class ECALPRecogniser:
    """Follows `protocols.AdaptiveRecogniser`: `predict` asks the graph, `remember` puts the frame into it.

    Scores are the labels that reached the frame, brought to a sum of 1.

    Args:
        vlm: whose image vectors.
        classes: names.
        texts: class vectors (C, d).
        config: of the graph.
    """

    def __init__(self, vlm: VLM, classes: Sequence[str], texts: Tensor, config: ECALPConfig) -> None:
        self._vlm, self._classes = vlm, tuple(classes)
        self.graph = LabelGraph(texts, config)
        self._last: tuple[bytes, Tensor] = (b"", torch.zeros(0))

    @property
    def classes(self) -> tuple[str, ...]:
        """See `protocols.Recogniser`."""
        return self._classes

    def predict(self, frames: NDArray[np.uint8], condition: Mapping[str, Any] | None = None) -> Prediction:
        """See `protocols.Recogniser`."""
        labels = torch.stack([self.graph.judge(feature) for feature in self._features(frames)])
        scores = labels / labels.sum(dim=1, keepdim=True).clamp_min(torch.finfo(labels.dtype).tiny)
        return Prediction(scores=scores.float().numpy())

    def remember(self, frames: NDArray[np.uint8], prediction: Prediction) -> None:
        """See `protocols.AdaptiveRecogniser`."""
        for feature in self._features(frames):
            self.graph.add(feature)

    def add_shot(self, frame: NDArray[np.uint8], label: str) -> Mapping[str, Any]:
        """Takes one labelled frame (H, W, 3); gives `shots`, how many there are of each class."""
        self.graph.add_shot(self._features(frame[None]), torch.tensor([self._classes.index(label)]))
        counts = torch.bincount(self.graph.shots[1], minlength=len(self._classes)).tolist()
        return {"shots": dict(zip(self._classes, counts, strict=True))}

    def reset(self) -> Mapping[str, Any]:
        """Forgets what was seen; shots stay. Gives `images`, 0."""
        self.graph.reset()
        return {"images": len(self.graph)}

    def _features(self, frames: NDArray[np.uint8]) -> Tensor:
        """Of the frames; those of the last call are kept, because a frame is judged and then remembered."""
        key = np.ascontiguousarray(frames).tobytes()
        if key != self._last[0]:
            self._last = (key, encode_frames(self._vlm, frames))
        return self._last[1]


def train(data: ImageData, config: ECALPConfig, run_dir: Path, *, seed: int, say: Say) -> Bundle:
    """Keeps class texts and, with `shots`, labelled features. Nothing is fitted."""
    vlm = vlm_at(config.vlm)
    arrays: dict[str, Tensor] = {}
    if config.shots:
        features, labels = shot_features(vlm, chosen_shots(data, config.shots, seed), run_dir, say)
        arrays = {"shots": features, "shot_labels": labels}
    texts = template_vectors(vlm, data.classes, config.templates)
    bundle = recogniser_bundle(
        "ecalp",
        config,
        {"texts": texts},
        classes=data.classes,
        camera=image_channel(data.frames.shape),
        data_fingerprint=fingerprint(data),
        arrays=arrays,
    )
    return with_vlm(bundle, vlm, config.vlm)


def load(bundle: Bundle) -> ECALPRecogniser:
    """The recogniser of a bundle, which has seen nothing yet but its shots."""
    recognition = recognition_of(bundle)
    recogniser = ECALPRecogniser(vlm_of(bundle), recognition.classes, bundle.weights["texts"], recognition.config(ECALPConfig))
    if "shots" in bundle.arrays:
        recogniser.graph.add_shot(bundle.arrays["shots"], bundle.arrays["shot_labels"])
    return recogniser


def evaluate(loaded: ECALPRecogniser, data: ImageData) -> dict[str, float]:
    """Replays the pictures in their order, each judged and then remembered; `accuracy_second_half` is after the graph has filled."""
    labels = known_labels(loaded.classes, data)
    predicted = []
    for frame in data.frames[:, None]:
        prediction = loaded.predict(frame)
        loaded.remember(frame, prediction)
        predicted.append(int(prediction.scores.argmax()))
    right = np.array(predicted) == labels
    figures = accuracies(np.array(predicted), labels)
    return {**figures, "accuracy_second_half": float(right[len(right) // 2 :].mean()), "ms_per_frame": milliseconds(loaded, data)}
