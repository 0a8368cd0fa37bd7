"""Tightening: limits below those of the vendor, as a user sets them for one cell; never above."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from robot_bridge.control.limits import ArmLimits, LimitsError


@dataclass(frozen=True, kw_only=True)
class Tightening:
    """What is set; the default changes nothing.

    Attributes:
        speed: share of the velocity limits, above 0 up to 1.
        workspace_min, workspace_max: (3,) box within the arm's own, metres; None leaves that corner.
    """

    speed: float = 1.0
    workspace_min: tuple[float, ...] | None = None
    workspace_max: tuple[float, ...] | None = None

    def apply(self, limits: ArmLimits) -> ArmLimits:
        """`limits`, tightened.

        Raises:
            LimitsError: this would widen a limit, or cannot be meant.
        """
        if not (math.isfinite(self.speed) and 0 < self.speed <= 1):
            raise LimitsError(f"speed: {self.speed}, valid: above 0 up to 1")
        low, high = self.workspace_min or limits.workspace_min, self.workspace_max or limits.workspace_max
        if len(low) != 3 or len(high) != 3:
            raise LimitsError(f"workspace box {low} .. {high}, valid: three numbers each")
        if any(a < b for a, b in zip(low, limits.workspace_min, strict=True)):
            raise LimitsError(f"workspace_min {low} lies outside the arm's {limits.workspace_min}")
        if any(a > b for a, b in zip(high, limits.workspace_max, strict=True)):
            raise LimitsError(f"workspace_max {high} lies outside the arm's {limits.workspace_max}")
        velocity = tuple(value * self.speed for value in limits.velocity)
        return dataclasses.replace(limits, velocity=velocity, workspace_min=low, workspace_max=high)
