"""Lens: how a camera images, in the pixels of one picture size."""

from __future__ import annotations

from dataclasses import dataclass

_STRAIGHT = (0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Lens:
    """Pinhole camera with plumb-bob distortion, as in `sensor_msgs/CameraInfo`; pixel centres are whole numbers.

    Attributes:
        width, height: of the picture, pixels.
        matrix: (4,) fx, fy, cx, cy in pixels.
        distortion: (5,) k1, k2, p1, p2, k3; it does not depend on the picture's size.
    """

    width: int
    height: int
    matrix: tuple[float, ...]
    distortion: tuple[float, ...] = _STRAIGHT

    def scaled(self, width: int, height: int) -> Lens:
        """The same lens in a picture that was resized, not cropped, to `width` x `height`.

        A pixel's area is resized, hence its centre u goes to (u + 1/2) s - 1/2.
        """
        sx, sy = width / self.width, height / self.height
        fx, fy, cx, cy = self.matrix
        matrix = (fx * sx, fy * sy, (cx + 0.5) * sx - 0.5, (cy + 0.5) * sy - 0.5)
        return Lens(width=width, height=height, matrix=matrix, distortion=self.distortion)
