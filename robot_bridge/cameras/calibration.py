"""StoredCalibration: the file with a camera's lens and pose that `armstack calibrate-camera` writes and the camera node takes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl_core.camera_calibration import CameraCalibration
from rl_core.data.atomic import write_atomically
from rl_core.errors import ArmstackError, ContractError
from robot_bridge.cameras.lens import Lens

_FIELDS = ("width", "height", "calibration", "figures")
_SAME_SHAPE = 0.01


class CalibrationError(ArmstackError):
    """Views or a calibration that cannot be used; names the file, what was found and what is valid."""


@dataclass(frozen=True, kw_only=True)
class StoredCalibration:
    """One camera.

    Attributes:
        width, height: of the pictures it was made of, pixels.
        calibration: pose, and lens in those pixels.
        figures: how good it is: views, reprojection error, hand-eye residual.
    """

    width: int
    height: int
    calibration: CameraCalibration
    figures: Mapping[str, Any]

    def save(self, path: Path) -> None:
        """Writes JSON."""
        with write_atomically(path) as file:
            file.write((json.dumps(dataclasses.asdict(self), indent=1) + "\n").encode())

    @classmethod
    def load(cls, path: Path) -> StoredCalibration:
        """Reads `save`'s file.

        Raises:
            CalibrationError: it cannot be read, or a field is missing or wrong.
        """
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            width, height = int(data["width"]), int(data["height"])
            if width < 1 or height < 1:
                raise CalibrationError(f"{path}: {width}x{height} pixels, valid: 1 or more")
            calibration = CameraCalibration(**data["calibration"])
            return cls(width=width, height=height, calibration=calibration, figures=dict(data.get("figures", {})))
        except OSError as error:
            raise CalibrationError(f"{path}: {error.strerror}; valid: a file that `armstack calibrate-camera` wrote") from error
        except ContractError as error:
            raise CalibrationError(f"{path}: {error}") from error
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, CalibrationError):
                raise
            raise CalibrationError(f"{path}: {type(error).__name__}: {error}; valid: JSON with {', '.join(_FIELDS)}") from error

    def for_pictures(self, captured: tuple[int, int], published: tuple[int, int]) -> CameraCalibration:
        """The calibration in pixels of the pictures that are published.

        Args:
            captured: (width, height) of what the camera gives.
            published: (width, height) of what it is resized to.

        Raises:
            CalibrationError: it was made of pictures of another shape, so the camera shows another part of its sensor now.
        """
        own = self.width, self.height
        if own != published and abs(own[0] * captured[1] / (own[1] * captured[0]) - 1.0) > _SAME_SHAPE:
            sizes = [f"{width}x{height}" for width, height in (own, captured, published)]
            raise CalibrationError(f"made of pictures of {sizes[0]}; the camera gives {sizes[1]}, valid: the same shape, or {sizes[2]}")
        scaled = self._lens().scaled(*published)
        return dataclasses.replace(self.calibration, matrix=scaled.matrix)

    def _lens(self) -> Lens:
        return Lens(width=self.width, height=self.height, matrix=self.calibration.matrix, distortion=self.calibration.distortion)
