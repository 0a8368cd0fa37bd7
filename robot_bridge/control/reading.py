"""Reading: where an arm's joints are read to be, and what tells a reading that jumped from an arm that moved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_bridge.arms.base import ArmState
from robot_bridge.control.limits import ArmLimits
from robot_bridge.control.names import JointNameError, order_by_name
from robot_bridge.control.trajectory import Motion

Array = NDArray[np.float64]

_ASIDE = 0.25  # rad between output and measured pose of a standing arm; a push or sagging is less, a reading that jumped is more
_LAG_S = 0.2  # by which a moving arm is behind its output at most


class Reading:
    """The newest measured joints, and the newest of those that can be where the arm is, in the order of the limits' names.

    Attributes:
        newest: (J,) positions, finite.
        plausible: (J,) those read last that were near the output, or near the plausible ones before where somebody may move the arm.
    """

    def __init__(self, limits: ArmLimits) -> None:
        self._limits = limits
        self.newest: Array = np.zeros(len(limits.names))
        self.plausible = self.newest

    def restart(self, measured: ArmState) -> None:
        """The arm is there, whatever was sent before.

        Raises:
            JointNameError: the measured names do not fit the limits'.
        """
        self.newest = self.plausible = self._ordered(measured)

    def trust(self) -> None:
        """An operator has looked: the newest reading is where the arm is."""
        self.plausible = self.newest

    def take(self, measured: ArmState, output: Motion, *, by_hand: bool) -> str | None:
        """A new reading, with the output at its time; `by_hand`: somebody may have moved the arm from there, a little in each period.

        Returns:
            None when taken, else why it cannot be used.
        """
        try:
            positions = self._ordered(measured)
        except JointNameError as error:
            return f"measured state: {error}"
        if not np.isfinite(positions).all():
            return f"measured positions are not finite: {positions.tolist()}"
        self.newest = positions
        away = np.abs(positions - (self.plausible if by_hand else output.position))
        if (away <= _ASIDE + _LAG_S * np.abs(output.velocity))[: self._limits.arm_joints].all():
            self.plausible = positions
        return None

    def aside(self, *places: Array) -> str | None:
        """Why an arm that stands between `places` (J,) is not where it is read to be: the reading may be wrong."""
        beyond = np.maximum(np.min(places, axis=0) - self.newest, self.newest - np.max(places, axis=0))[: self._limits.arm_joints]
        joint = int(beyond.argmax())
        if beyond[joint] <= _ASIDE:
            return None
        return f"{self._limits.names[joint]} is measured {beyond[joint]:.3f} rad from where it can be; look at the arm, then rearm"

    def _ordered(self, measured: ArmState) -> Array:
        if measured.names == self._limits.names:
            return measured.positions
        return measured.positions[order_by_name(measured.names, self._limits.names)]
