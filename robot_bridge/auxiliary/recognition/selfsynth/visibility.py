"""Which features of a drawn part can be seen: the truth that explanations are measured against. Training never asks for it.

The camera's direction in the part's own frame follows from the picture's factors; what a segmentation knows (`object_area`, `cut_off`)
is among the factors too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.recognition.errors import RecognitionError
from robot_bridge.auxiliary.recognition.selfsynth.concepts import Concepts, Seen

_TILT_DEG = {"standing": 0.0, "lying": 90.0, "upside down": 180.0}
"""Turn about the part's own y axis, as `sim_envs.parts.stage` poses it."""
_NEEDED = ("azimuth_deg", "elevation_deg", "roll_deg", "pose")


def camera_directions(data: ImageData) -> NDArray[np.float64]:
    """Directions (n, 3) from the part to the camera, in the part's own frame, length 1:  R_pose^T R_z(roll)^T c.

    Raises:
        RecognitionError: pictures without these factors.
    """
    if missing := [name for name in _NEEDED if name not in data.factors]:
        raise RecognitionError(f"what is visible cannot be known: no factors {', '.join(missing)}; valid: pictures of `armstack aux data`")
    azimuth, elevation, roll = (np.deg2rad(data.factors[name].astype(np.float64)) for name in _NEEDED[:3])
    tilt = np.deg2rad([_TILT_DEG[str(pose)] for pose in data.factors["pose"]])
    x, y = np.cos(elevation) * np.cos(azimuth - roll), np.cos(elevation) * np.sin(azimuth - roll)
    z = np.sin(elevation)
    return np.stack([np.cos(tilt) * x - np.sin(tilt) * z, y, np.sin(tilt) * x + np.cos(tilt) * z], axis=1)


def visible_features(data: ImageData, concepts: Concepts) -> list[dict[str, bool]]:
    """For each picture, feature of its class -> whether it can be seen.

    Raises:
        RecognitionError: a class or feature about which nothing was said, or a factor that is not there.
    """
    directions = camera_directions(data)
    found: list[dict[str, bool]] = [{} for _ in range(len(data))]
    for label in np.unique(data.labels):
        name, rows = data.classes[label], np.flatnonzero(data.labels == label)
        for feature in concepts.only([name]).classes[name]:
            what = f"{concepts.source}: feature {feature.text!r} of {name}"
            if feature.seen is None:
                raise RecognitionError(f"{what}: no `seen`; valid: always, or when it can be seen")
            shown = _shown(what, feature.seen, directions[rows], data, rows)
            for row, each in zip(rows, shown, strict=True):
                found[row][feature.text] = bool(each)
    return found


def _shown(what: str, seen: Seen, directions: NDArray[np.float64], data: ImageData, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    shown = np.ones(len(rows), bool)
    if seen.axis is not None:
        cosine = directions @ np.array(seen.axis)
        angle = np.rad2deg(np.arccos(np.clip(np.abs(cosine) if seen.either_side else cosine, -1, 1)))
        shown &= (seen.angle_deg[0] <= angle) & (angle <= seen.angle_deg[1])
    for name, allowed in seen.where.items():
        if name not in data.factors:
            raise RecognitionError(f"{what}: where: no factor {name!r}; factors: {', '.join(data.factors)}")
        if name == "pose" and (unknown := [str(value) for value in allowed if value not in _TILT_DEG]):
            raise RecognitionError(f"{what}: where.pose: {', '.join(unknown)}; valid: {', '.join(_TILT_DEG)}")
        values = data.factors[name][rows]
        if values.dtype.kind == "f":
            shown &= (values >= allowed[0]) & (values <= allowed[-1])
        else:
            shown &= np.isin(values, allowed)
    return shown
