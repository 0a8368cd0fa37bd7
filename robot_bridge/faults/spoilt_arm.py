"""SpoiltArm: comes between a driver and the control loop and does to the arm's state and calls what a bad arm would."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_bridge.arms.base import ArmLost, ArmState
from robot_bridge.faults.catalogue import LEAD
from robot_bridge.faults.trace import Happening

MODES = ("", "frozen", "jumping", "not_finite", "blocked", "lost")
_BLOCKED_S = 10.0


class SpoiltArm:
    """Takes the place of `connect`, `read` and `command` of an arm; with `mode` empty everything passes as it is.

    Args:
        arm: what the control loop calls.
        tell: called with `lost` when a call raises or reads no number, with `blocked` when one begins to block; once a mode.

    Attributes:
        mode: one of `MODES`; set by any thread.
    """

    def __init__(self, arm: Any, tell: Callable[[Happening], None]) -> None:
        self.mode = ""
        self._tell, self._told = tell, False
        self._free = threading.Event()
        self._frozen: ArmState | None = None
        driver = getattr(arm, "driver", arm)  # a driven arm's kinematics must see the spoilt state too
        self._limits = driver.limits
        self._read, self._connect, self._move = driver.read, arm.connect, arm.command
        driver.read, arm.connect, arm.command = self.read, self.connect, self.move

    def spoil(self, mode: str) -> None:
        """From now on `mode`.

        Raises:
            ValueError: there is none.
        """
        if mode not in MODES:
            raise ValueError(f"mode {mode!r}, valid: {', '.join(MODES)}")
        self._frozen, self._told = None, False
        self._free.clear() if mode == "blocked" else self._free.set()
        self.mode = mode

    def connect(self) -> None:
        """See `Arm.connect`."""
        self._check()
        self._connect()

    def read(self) -> ArmState:
        """See `Arm.read`."""
        self._check()
        try:
            state = self._read()
        except Exception:
            self._say("lost")
            raise
        match self.mode:
            case "frozen":
                self._frozen = state = self._frozen or state
            case "jumping":
                joint = self._limits.arm_joints - 1
                state = self._moved(state, joint, state.positions[joint] + LEAD * self._limits.max_lead[joint])
            case "not_finite":
                self._say("lost")
                state = self._moved(state, 0, np.nan)
        return state

    def move(self, positions: NDArray[np.float64], period_s: float) -> None:
        """See `Arm.command`."""
        self._check()
        if self.mode == "blocked":
            self._say("blocked")
            self._free.wait(_BLOCKED_S)
        self._move(positions, period_s)

    def _check(self) -> None:
        if self.mode == "lost":
            self._say("lost")
            raise ArmLost("fault injection: the arm does not answer")

    def _say(self, event: Happening) -> None:
        if not self._told:
            self._told = True
            self._tell(event)

    @staticmethod
    def _moved(state: ArmState, joint: int, position: float) -> ArmState:
        positions = state.positions.copy()
        positions[joint] = position
        return dataclasses.replace(state, positions=positions)
