"""How good a detector is on real and generated frames. Rates are 0..1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.monitoring.detection import auroc
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from robot_bridge.auxiliary.monitoring.manifold.frames import CLASSES, means_generated, require_shape
from robot_bridge.auxiliary.monitoring.manifold.recogniser import AuthenticityRecogniser
from robot_bridge.auxiliary.recognition.evaluation import milliseconds

_BATCH = 32


def evaluate(loaded: AuthenticityRecogniser, data: ImageData) -> dict[str, float]:
    """`real_frames` and `generated_frames`, how many there are; `false_positive_rate` of the real ones, `detected` of the generated
    ones, of both `auroc`, `average_precision` and `accuracy`; and `ms_per_frame`. Figures of what the data lack are left out.

    Args:
        loaded: the detector.
        data: frames of the detector's camera; those of a class `generated` are, those of any other are real.

    Raises:
        AuthenticityError: no frames, frames of another size, or a class that is not plainly one of the two kinds.
    """
    if not len(data):
        raise AuthenticityError("no frames to evaluate on; valid: at least one")
    require_shape(data, loaded.shape, "data")
    _require_kinds(data.classes)
    found = [loaded.predict(data.frames[at : at + _BATCH]) for at in range(0, len(data), _BATCH)]
    deviations = np.concatenate([each.values["deviations"] for each in found])
    flagged = np.concatenate([each.scores[:, 1] for each in found]) > 0.5
    made = np.array([name == "generated" for name in data.classes])[data.labels]
    figures = {"real_frames": float((~made).sum()), "generated_frames": float(made.sum())}
    if (~made).any():
        figures["false_positive_rate"] = float(flagged[~made].mean())
    if made.any():
        figures["detected"] = float(flagged[made].mean())
    if made.any() and (~made).any():
        figures["auroc"] = auroc(deviations[made], deviations[~made])
        figures["average_precision"] = average_precision(deviations, made)
        figures["accuracy"] = float((flagged == made).mean())
    return {**figures, "ms_per_frame": milliseconds(loaded, data)}


def _require_kinds(classes: tuple[str, ...]) -> None:
    """Raises AuthenticityError for a class that may be meant as the other kind: beside `real`, or all but called `generated`."""
    unclear = [name for name in classes if name not in CLASSES and ("real" in classes or means_generated(name))]
    if unclear:
        raise AuthenticityError(
            f"classes {', '.join(classes)}: is {', '.join(unclear)} real or generated? valid: the classes real and generated, or generated "
            "beside any names of what real frames show"
        )


def average_precision(scores: NDArray[np.floating], positive: NDArray[np.bool_]) -> float:
    """Precision, averaged over the positives in falling order of their scores; equal scores are taken together.

    Raises:
        AuthenticityError: no positives.
    """
    if not positive.any():
        raise AuthenticityError("no generated frames; valid: at least one")
    levels, place = np.unique(-scores, return_inverse=True)
    hits, counts = np.bincount(place, weights=positive, minlength=len(levels)), np.bincount(place, minlength=len(levels))
    precision = np.cumsum(hits) / np.cumsum(counts)
    return float((precision * hits).sum() / positive.sum())
