"""Are echoes live? A radar that froze, lost an antenna or looks elsewhere still sends some, and a network sees a person in all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_bridge.auxiliary.monitoring.rfmamba.interface import RadarError

Echo = NDArray[np.complex64]

_LEAST_SHARE, _MOST_SHARE = 0.5, 1.5
"""Of the empty cell's echo in a window; a person and noise leave 0.99 to 1.02 in simulation."""


class RadarLiveness:
    """Judges windows in the order in which they come."""

    def __init__(self) -> None:
        self._newest: Echo | None = None

    def require(self, echo: Echo, background: Echo | None) -> None:
        """Checks a window.

        Args:
            echo: (frames, tx, rx, frequency).
            background: (tx, rx, frequency), of the empty cell; None: not known yet.

        Raises:
            RadarError: an antenna pair whose frames are equal to the bit, which noise forbids, or an echo without the empty cell's in it.
        """
        before = echo[:0] if self._newest is None else self._newest[None]
        self._newest = echo[-1].copy()
        pairs = [(echo[1:], echo[:-1]), (echo[-1:][: len(before)], before)]
        frozen = np.concatenate([(one == other).all(axis=-1) for one, other in pairs])
        if frozen.any():
            _, transmitter, receiver = np.argwhere(frozen)[0]
            raise RadarError(
                f"radar echo: two frames of transmitter {transmitter} and receiver {receiver} are equal to the bit; valid: live ones, "
                "which noise makes differ. Is the radar frozen, or an antenna unplugged?"
            )
        if background is not None:
            power = float(np.vdot(background, background).real)
            shares = [float(np.vdot(background, frame).real) / power if power else 0.0 for frame in echo]
            worst = max(shares, key=lambda share: abs(share - 1))
            if not _LEAST_SHARE <= worst <= _MOST_SHARE:
                raise RadarError(
                    f"radar echo: holds {worst:.2f} of the empty cell's echo, valid: about 1. Is the radar dead, or has it or the cell "
                    "changed? Learn the empty cell again"
                )
