"""CameraCalibration: where a camera looks from and how it images; part of an image channel's contract."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rl_core.errors import ContractError


@dataclass(frozen=True, kw_only=True)
class CameraCalibration:
    """Pose (hand-eye calibration) and lens of one camera, as in `sensor_msgs/CameraInfo`.

    Attributes:
        frame: what the pose is relative to: `base` for a camera that stands, `ee` for one on the hand.
        position: (3,) the optical centre, metres in `frame`.
        quaternion: (4,) x, y, z, w of the optical frame (x right, y down, z forward) in `frame`.
        matrix: (4,) fx, fy, cx, cy in pixels of the channel's shape.
        distortion: (5,) k1, k2, p1, p2, k3 of the plumb-bob model; zeros for a straight lens.
    """

    frame: str
    position: tuple[float, ...]
    quaternion: tuple[float, ...]
    matrix: tuple[float, ...]
    distortion: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if self.frame not in ("base", "ee"):
            raise ContractError(f"camera calibration: frame {self.frame!r}, valid: base, ee")
        for field, size in (("position", 3), ("quaternion", 4), ("matrix", 4), ("distortion", 5)):
            try:
                values = tuple(float(value) for value in getattr(self, field))
            except (TypeError, ValueError) as error:
                raise ContractError(f"camera calibration: {field} {getattr(self, field)!r}, valid: {size} numbers") from error
            object.__setattr__(self, field, values)
            if len(values) != size or not all(map(math.isfinite, values)):
                raise ContractError(f"camera calibration: {field} {values}, valid: {size} finite numbers")
        norm = math.hypot(*self.quaternion)
        if abs(norm - 1.0) > 1e-3:
            raise ContractError(f"camera calibration: quaternion {self.quaternion} has norm {norm:.4f}, valid: 1 (x, y, z, w)")
        if min(self.matrix[:2]) <= 0.0:
            raise ContractError(f"camera calibration: fx, fy {self.matrix[:2]}, valid: above 0")

    def moved_from(self, other: CameraCalibration) -> tuple[float, float]:
        """How far this camera stands (m) and is turned (rad) from `other`, both in the same frame."""
        cosine = abs(sum(a * b for a, b in zip(self.quaternion, other.quaternion, strict=True)))
        return math.dist(self.position, other.position), 2.0 * math.acos(min(1.0, cosine))
