"""How good a recogniser is on labelled pictures. Rates are 0..1."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.protocols import Recogniser
from robot_bridge.auxiliary.recognition.errors import RecognitionError

_BATCH = 32


def evaluate(loaded: Recogniser, data: ImageData) -> dict[str, float]:
    """Accuracy over all pictures, of the worst class and of the mean class, and the time that one frame takes by itself.

    Args:
        loaded: a recogniser.
        data: pictures whose classes it knows, in any order.

    Raises:
        RecognitionError: a class that it does not know, or no pictures.
    """
    labels = known_labels(loaded.classes, data)
    scores = np.concatenate([loaded.predict(data.frames[at : at + _BATCH]).scores for at in range(0, len(data), _BATCH)])
    return {**accuracies(scores.argmax(axis=1), labels), "ms_per_frame": milliseconds(loaded, data)}


def accuracies(predicted: NDArray[np.int64], labels: NDArray[np.int64]) -> dict[str, float]:
    """`accuracy`, `accuracy_mean_class`, `accuracy_worst_class` of predictions (n,)."""
    right = predicted == labels
    by_class = [float(right[labels == label].mean()) for label in np.unique(labels)]
    return {
        "accuracy": float(right.mean()),
        "accuracy_mean_class": float(np.mean(by_class)),
        "accuracy_worst_class": min(by_class),
    }


def known_labels(classes: tuple[str, ...], data: ImageData) -> NDArray[np.int64]:
    """Labels (n,) of the pictures as indices into `classes`.

    Raises:
        RecognitionError: a class that is not among them, or no pictures.
    """
    present = [data.classes[label] for label in np.unique(data.labels)]
    if not present:
        raise RecognitionError("no pictures to evaluate on; valid: at least one")
    if unknown := [name for name in present if name not in classes]:
        raise RecognitionError(f"pictures of {', '.join(unknown)}; the recogniser knows: {', '.join(classes)}")
    place = np.array([classes.index(name) if name in classes else -1 for name in data.classes])
    return place[data.labels]


def milliseconds(loaded: Recogniser, data: ImageData, repeats: int = 10) -> float:
    """Median time of `predict` for one frame, in ms, after a first call that is not counted."""
    frame, costs = data.frames[:1], []
    loaded.predict(frame)
    for _ in range(repeats):
        begun = time.perf_counter()
        loaded.predict(frame)
        costs.append(time.perf_counter() - begun)
    return 1000 * float(np.median(costs))
