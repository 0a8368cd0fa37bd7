"""How good a guard is on pictures of known, damaged (near) and unknown (far) objects. Rates are 0..1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.monitoring.detection import DetectionError, auroc, false_accept_rate
from robot_bridge.auxiliary.monitoring.guard import GuardRecogniser
from robot_bridge.auxiliary.recognition.evaluation import milliseconds

DEFECT = 3
"""Value of a defect in `ImageData.segmentation`."""
_BATCH = 32


@dataclass(frozen=True, kw_only=True, eq=False)
class Judged:
    """n pictures and what a guard said of them.

    Attributes:
        names: class of each picture, (n,) strings.
        damaged: whether its object is, (n,) bool.
        predicted: name of the class that the guard takes it for, (n,) strings.
        known: score (n,), higher = known.
        maps: outliers (n, rows, columns); None where the guard makes none.
        masks: `ImageData.segmentation`, (n, H, W); None without.
    """

    names: NDArray[np.str_]
    damaged: NDArray[np.bool_]
    predicted: NDArray[np.str_]
    known: NDArray[np.float32]
    maps: NDArray[np.float32] | None
    masks: NDArray[np.uint8] | None


def evaluate(loaded: GuardRecogniser, data: ImageData) -> dict[str, float]:
    """The figures of `guard_figures`, `accepted`, the share of known whole objects above the threshold, and `ms_per_frame`.

    Args:
        loaded: a guard.
        data: pictures; a factor `defect` that is not "" marks damage, a class that the guard does not know an unknown object.

    Raises:
        DetectionError: no pictures of known whole objects.
    """
    found = [loaded.predict(data.frames[at : at + _BATCH]) for at in range(0, len(data), _BATCH)]
    maps = [each.map for each in found if each.map is not None]
    judged = Judged(
        names=np.array(data.classes)[data.labels],
        damaged=damaged_pictures(data),
        predicted=np.array(loaded.classes)[np.concatenate([each.scores for each in found]).argmax(axis=1)],
        known=np.concatenate([each.values["known_score"] for each in found]),
        maps=np.concatenate(maps) if maps else None,
        masks=data.segmentation,
    )
    figures = guard_figures(judged, loaded.classes)
    whole = np.isin(judged.names, loaded.classes) & ~judged.damaged
    return {**figures, "accepted": float((judged.known >= loaded.threshold)[whole].mean()), "ms_per_frame": milliseconds(loaded, data)}


def damaged_pictures(data: ImageData) -> NDArray[np.bool_]:
    """(n,): whether the object of a picture is damaged; none is where nobody says so."""
    return np.asarray(data.factors.get("defect", np.full(len(data), ""))) != ""


def guard_figures(judged: Judged, classes: tuple[str, ...]) -> dict[str, float]:
    """`accuracy` on known whole objects; `near_auroc`, `near_fpr95` on damaged objects of known classes; `far_auroc`, `far_fpr95` on
    unknown classes; `map_auroc`, see there. Figures of what the data lack are left out.

    Args:
        judged: pictures and verdicts.
        classes: those that the guard knows.

    Raises:
        DetectionError: no pictures of known whole objects.
    """
    known_class = np.isin(judged.names, classes)
    whole, near = known_class & ~judged.damaged, known_class & judged.damaged
    if not whole.any():
        raise DetectionError(f"no pictures of whole objects of {', '.join(classes)}; valid: at least one")
    figures = {"accuracy": float((judged.predicted == judged.names)[whole].mean())}
    for kind, unknown in (("near", near), ("far", ~known_class)):
        if unknown.any():
            figures[f"{kind}_auroc"] = auroc(judged.known[whole], judged.known[unknown])
            figures[f"{kind}_fpr95"] = false_accept_rate(judged.known[whole], judged.known[unknown])
    if near.any() and judged.maps is not None and judged.masks is not None:
        overlap = map_auroc(judged.maps[near], judged.masks[near])
        figures |= {} if np.isnan(overlap) else {"map_auroc": overlap}
    return figures


def map_auroc(maps: NDArray[np.float32], masks: NDArray[np.uint8]) -> float:
    """Mean over pictures of the probability that a place with the defect is more of an outlier than one with its object alone.

    Args:
        maps: (n, rows, columns).
        masks: (n, H, W), as `ImageData.segmentation`.

    Returns:
        0..1; NaN where no picture has places of both kinds.
    """
    rates, size = [], maps.shape[1:]
    for outliers, mask in zip(maps, masks, strict=True):
        defect, own = (_covered(mask == value, size) for value in (DEFECT, 1))
        at_defect, at_object = defect > 0.05, (own > 0.5) & (defect == 0)
        if at_defect.any() and at_object.any():
            rates.append(auroc(outliers[at_defect], outliers[at_object]))
    return float(np.mean(rates)) if rates else float("nan")


def _covered(mask: NDArray[np.bool_], size: tuple[int, ...]) -> NDArray[np.float32]:
    """Share of each place that the mask covers."""
    return F.adaptive_avg_pool2d(torch.from_numpy(mask)[None].float(), (size[0], size[1]))[0].numpy()
