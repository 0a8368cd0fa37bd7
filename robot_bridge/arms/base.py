"""Arm: the one protocol behind which every driver sits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from robot_bridge.control.limits import ArmLimits


class ArmLost(RuntimeError):
    """The arm does not answer any more, or its controller reports a fault; the loop goes to `fault`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmState:
    """One reading of an arm.

    Attributes:
        stamp_ns: when it was measured, nanoseconds on the clock of stamps.
        names: joint names in the order of the arrays, gripper last.
        positions: (J,) float64, rad and m.
        velocities: (J,) float64, rad/s and m/s.
        ee_pos: (3,) end-effector position, metres, frame base.
        ee_quat: (4,) end-effector orientation, x y z w, frame base.
        wrench: (6,) force N and torque N m at the end effector; None where not measured.
    """

    stamp_ns: int
    names: tuple[str, ...]
    positions: NDArray[np.float64]
    velocities: NDArray[np.float64]
    ee_pos: NDArray[np.float64]
    ee_quat: NDArray[np.float64]
    wrench: NDArray[np.float64] | None = None


@runtime_checkable
class Arm(Protocol):
    """A driver. Its calls may block: in real time they run on a thread of their own.

    Attributes:
        joint_names: names in the order of every array, gripper last.
        limits: the limits of this arm, same order.
    """

    joint_names: tuple[str, ...]
    limits: ArmLimits

    def connect(self) -> None:
        """Opens the connection; raises ArmLost with what to check."""
        ...

    def read(self) -> ArmState:
        """The newest measured state; raises ArmLost."""
        ...

    def command(self, positions: NDArray[np.float64], period_s: float) -> None:
        """Moves to `positions` (J,) within `period_s`; never more than one period of motion, so that nothing runs on.

        Raises:
            ArmLost: the arm did not take it.
        """
        ...

    def stop(self) -> None:
        """The vendor's own stop; called once per e-stop or fault, possibly while another call is blocked."""
        ...

    def close(self) -> None:
        """Ends the connection; further calls raise ArmLost."""
        ...
