"""Boundary: where motion stops and how far one command may reach."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from robot_bridge.control.limits import ArmLimits
from robot_bridge.control.rotation import angle_between

Forward = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Arm joints (J,) -> end-effector position (3,) and orientation (4,) x y z w, frame base."""

_SLACK = 1e-9  # rounding of a plan that ends exactly on a limit
_BISECTIONS = 24


class Boundary:
    """Joint range, workspace box and orientation step of one arm.

    An arm found outside its range or box may come back in, never go further out: what counts as inside reaches from the
    limit to where the output is.

    Args:
        limits: the arm's.
        forward: forward kinematics; None only for an arm without end effector, whose box is then not watched.
    """

    def __init__(self, limits: ArmLimits, forward: Forward | None) -> None:
        self._low = np.array(limits.position_min)
        self._high = np.array(limits.position_max)
        self._box_low = np.array(limits.workspace_min) - _SLACK
        self._box_high = np.array(limits.workspace_max) + _SLACK
        self._velocity = np.array(limits.velocity[: limits.arm_joints])
        self._step = limits.max_orientation_step
        self._arm = limits.arm_joints
        self._forward = forward

    def clamp(self, point: NDArray[np.float64], output: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
        """`point` within the joint range, and whether it was outside."""
        inside = np.clip(point, np.minimum(self._low, output), np.maximum(self._high, output))
        return inside, bool((inside != point).any())

    def reach(
        self, point: NDArray[np.float64], start: NDArray[np.float64], seconds: float, speed: float
    ) -> tuple[NDArray[np.float64], bool]:
        """`point`, or as far towards it from `start` as the arm comes in `seconds`, and whether it was cut.

        `speed` is the share of the velocity limits that may be used; the gripper's end is not cut, it takes what time it takes.
        """
        step = (point - start)[: self._arm]
        ratio = float(np.max(np.abs(step) / self._velocity)) / (seconds * speed)
        if ratio <= 1 + _SLACK:
            return point, False
        cut = point.copy()
        cut[: self._arm] = start[: self._arm] + step / ratio
        return cut, True

    def contain(self, point: NDArray[np.float64], start: NDArray[np.float64]) -> tuple[NDArray[np.float64], str | None]:
        """`point`, or as far towards it from `start`, in a line in joint space, as workspace box and orientation step allow.

        Returns:
            The point and what cut it: `workspace`, `orientation` or None.
        """
        forward, arm = self._forward, self._arm
        if forward is None:
            return point, None
        position, orientation = forward(start[:arm])
        low, high = self._widened(position)

        def violated(joints: NDArray[np.float64]) -> str | None:
            there, turned = forward(joints)
            if not ((there >= low).all() and (there <= high).all()):
                return "workspace"
            return "orientation" if angle_between(orientation, turned) > self._step + _SLACK else None

        cause = violated(point[:arm])
        if cause is None:
            return point, None
        good, bad = 0.0, 1.0
        step = point[:arm] - start[:arm]
        for _ in range(_BISECTIONS):
            middle = (good + bad) / 2
            good, bad = (good, middle) if violated(start[:arm] + middle * step) else (middle, bad)
        cut = point.copy()
        cut[:arm] = start[:arm] + good * step
        return cut, cause

    def crossed(self, output: NDArray[np.float64], *positions: NDArray[np.float64]) -> str | None:
        """Whether one of `positions` lies outside: `position`, `workspace` or None; `output` is where the arm is sent now."""
        low, high = np.minimum(self._low - _SLACK, output), np.maximum(self._high + _SLACK, output)
        for joints in positions:
            if not ((joints >= low).all() and (joints <= high).all()):
                return "position"
        if self._forward is None:
            return None
        low, high = self._widened(self._forward(output[: self._arm])[0])
        for joints in positions:
            there = self._forward(joints[: self._arm])[0]
            if not ((there >= low).all() and (there <= high).all()):
                return "workspace"
        return None

    def _widened(self, position: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.minimum(self._box_low, position), np.maximum(self._box_high, position)
