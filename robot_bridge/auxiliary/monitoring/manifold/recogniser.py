"""Says of every frame how likely it was generated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from robot_bridge.auxiliary.monitoring.manifold.calibration import Calibration, frame_scores
from robot_bridge.auxiliary.monitoring.manifold.frames import CLASSES
from robot_bridge.auxiliary.monitoring.manifold.pixels import cut
from robot_bridge.auxiliary.monitoring.manifold.scoring import Scorer
from robot_bridge.auxiliary.protocols import Prediction


class AuthenticityRecogniser:
    """See `protocols.Recogniser`. Judges each frame for itself: its score does not depend on the frames beside it.

    Attributes:
        scorer: of crops.
        calibration: on real frames.
        shape: of the camera's frames (H, W, 3).
        side: pixels of a crop.
        tiles: of a frame, in a row and in a column.
    """

    classes = CLASSES

    def __init__(self, scorer: Scorer, calibration: Calibration, *, shape: tuple[int, ...], side: int, tiles: int) -> None:
        self.scorer, self.calibration, self.shape = scorer, calibration, shape
        self.side, self.tiles = side, tiles

    def predict(self, frames: NDArray[np.uint8], condition: Mapping[str, Any] | None = None) -> Prediction:
        """See `protocols.Recogniser`.

        The score of `generated` is sigmoid(deviations above the threshold): above 0.5 a frame is flagged, and a guard holds on it with
        `hold_on:=generated`. `values["deviations"]`: deviations above the mean of real frames. With more than one crop a frame, `map`
        has the same score of each (n, tiles, tiles).
        """
        crops = self.scorer(cut(frames, self.side, self.tiles))
        excess = self.calibration.excess(frame_scores(crops, self.tiles))
        generated = torch.sigmoid(excess)
        place = torch.sigmoid(self.calibration.tile_excess(crops)).view(-1, self.tiles, self.tiles)
        return Prediction(
            scores=torch.stack((1 - generated, generated), dim=1).float().numpy(),
            map=place.float().numpy() if self.tiles > 1 else None,
            values={"deviations": (excess + self.calibration.k).float().numpy()},
        )
