"""Camera: what every source of pictures can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rl_core.errors import ArmstackError
from robot_bridge.cameras.lens import Lens


class CameraError(ArmstackError):
    """A camera or a setting of one that does not exist or cannot be used; says what would be valid."""


class CameraLost(ArmstackError):
    """A camera that was there gives no pictures any more; it may come back."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """One picture.

    Attributes:
        pixels: (H, W, 3) RGB, first row on top.
        stamp_ns: when it was taken, as near as the source can tell, nanoseconds since the epoch.
    """

    pixels: NDArray[np.uint8]
    stamp_ns: int


class Camera(Protocol):
    """A source of pictures. All methods are called on one thread, which they may block.

    Attributes:
        lens: what the camera itself knows of its lens once it is open; None where it knows nothing.
    """

    lens: Lens | None

    def open(self) -> str:
        """Connects; gives what the camera is known by (serial number, path, topic).

        Raises:
            CameraError: no such camera; lists those there are.
            CameraLost: it is there and cannot be opened.
        """
        ...

    def grab(self) -> Frame | None:
        """Waits for the next picture; None where none came for a while.

        Raises:
            CameraLost: the camera is gone.
        """
        ...

    def close(self) -> None:
        """Lets the camera go; it may be closed already, or never have been open."""
        ...
