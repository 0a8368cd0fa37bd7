"""WrenchGuard: stops motion where the measured wrench reaches the arm's limits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_bridge.control.limits import ArmLimits


class WrenchGuard:
    """Holds once force or torque exceeds its limit, until an operator clears it by name.

    Cleared while the load is still there (an arm pressed on a table), it allows that load and no more, so that the arm can be
    driven off; once the load is within the limits they count again.
    """

    def __init__(self, limits: ArmLimits) -> None:
        self._limits = np.array([np.inf if limit is None else limit for limit in (limits.max_force, limits.max_torque)])
        self._allowed = self._limits.copy()
        self._load = np.zeros(2)
        self.hold: str | None = None

    def measure(self, wrench: NDArray[np.float64] | None) -> None:
        """Takes a measured wrench (6,), N and N m; None where none is measured. A wrench that is not finite holds too."""
        if wrench is None:
            return
        self._load = np.array([np.linalg.norm(wrench[:3]), np.linalg.norm(wrench[3:])])
        if (self._load <= self._limits).all():
            self._allowed = self._limits.copy()
        elif not (self._load <= self._allowed).all() and self.hold is None:
            (force, torque), (most_force, most_torque) = self._load, self._allowed
            self.hold = f"measured {force:.1f} N and {torque:.1f} N m, valid: up to {most_force:.1f} N and {most_torque:.1f} N m"

    def clear(self) -> str | None:
        """An operator ends the hold; returns None when done, else why not."""
        if self.hold is None:
            return "no wrench hold"
        if not np.isfinite(self._load).all():
            return "the measured wrench is not finite"
        self.hold = None
        self._allowed = np.maximum(self._limits, self._load)
        return None
