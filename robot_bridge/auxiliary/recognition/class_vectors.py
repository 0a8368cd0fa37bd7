"""Recognisers that compare an image's vector with one vector a class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from robot_bridge.auxiliary.protocols import Prediction
from robot_bridge.auxiliary.recognition.class_prompts import class_logits
from robot_bridge.auxiliary.recognition.errors import RecognitionError
from robot_bridge.auxiliary.vlm.interface import VLM

ClassEncoder = Callable[[Sequence[str]], Tensor]
"""Names (C) -> class vectors (C, d)."""


class ClassVectorRecogniser:
    """p(i | x) = softmax_i(exp(logit_scale) * cos(f(x), T_i)); as fast as the VLM's image tower.

    Args:
        vlm: whose image tower is f.
        classes: names.
        vectors: T (C, d).
    """

    def __init__(self, vlm: VLM, classes: Sequence[str], vectors: Tensor) -> None:
        self._vlm, self._classes, self.vectors = vlm, tuple(classes), vectors.detach()

    @property
    def classes(self) -> tuple[str, ...]:
        """See `protocols.Recogniser`."""
        return self._classes

    def predict(self, frames: NDArray[np.uint8], condition: Mapping[str, Any] | None = None) -> Prediction:
        """See `protocols.Recogniser`."""
        features = encode_frames(self._vlm, frames)
        return Prediction(scores=torch.softmax(class_logits(features, self.vectors, self._vlm.logit_scale), dim=-1).numpy())


class OpenVocabularyRecogniser(ClassVectorRecogniser):
    """The same for methods that can encode any name.

    Args:
        vlm: see `ClassVectorRecogniser`.
        classes: names to begin with.
        encode: makes class vectors of names.
    """

    def __init__(self, vlm: VLM, classes: Sequence[str], encode: ClassEncoder) -> None:
        super().__init__(vlm, classes, encode(classes))
        self._encode = encode

    def set_vocabulary(self, names: Sequence[str]) -> Mapping[str, Any]:
        """Takes other classes, without training.

        Args:
            names: at least one, all different.

        Returns:
            `classes`, those it now knows.

        Raises:
            RecognitionError: no names, or a name twice.
        """
        if not names or len(set(names)) != len(names):
            raise RecognitionError(f"names {list(names)}; valid: different ones, at least one")
        self.vectors, self._classes = self._encode(names).detach(), tuple(names)
        return {"classes": list(self._classes)}


def encode_frames(vlm: VLM, frames: NDArray[np.uint8]) -> Tensor:
    """Joint vectors (n, d) of frames (n, H, W, 3), on the CPU."""
    with torch.no_grad():
        return vlm.encode_image(vlm.preprocess(frames)).float().cpu()
