"""SpaceMouse: 3Dconnexion's devices with six axes, through pyspacemouse."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Literal

import numpy as np

from robot_bridge.teleop.base import Reading, SourceError, View

_DEAD_ZONE = 0.05  # of an axis: no cap stands exactly in its middle
_SILENT_S = 0.2  # a cap that is held off its middle is told of all the time; one that fell silent was unplugged
_QUEUED = 200  # reports come faster than they are read


class SpaceMouse:
    """See `TeleopSource`. x forward, y left, z up; the first button opens and closes the gripper. Never tried on a device.

    Args:
        device: name of the device, for pyspacemouse; empty takes the first.
    """

    space: Literal["end_effector", "joint"] = "end_effector"

    def __init__(self, *, device: str = "") -> None:
        self._name = device
        self._device: Any = None
        self._stamp: float | None = None
        self._moved_s = -1.0
        self._pressed = False

    def open(self) -> None:
        """Opens the device.

        Raises:
            SourceError: the library, hidapi or the device is missing, or may not be used.
        """
        try:
            import pyspacemouse
        except ImportError as error:
            raise SourceError(f"spacemouse needs pyspacemouse: pip install 'armstack[spacemouse]' ({error})") from error
        try:
            with contextlib.redirect_stdout(sys.stderr):  # it prints
                self._device = pyspacemouse.open(device=self._name or None, axis_convention=pyspacemouse.AxisConvention.ROS)
        except Exception as error:  # the library raises whatever hidapi and its table of devices give
            advice = "is it plugged in, hidapi installed (apt install libhidapi-hidraw0), and may you read /dev/hidraw*?"
            raise SourceError(f"spacemouse: {error}; {advice}") from error

    def read(self, view: View) -> Reading:
        """See `TeleopSource.read`.

        Raises:
            SourceError: the device is gone.
        """
        try:
            state = self._newest()
        except Exception as error:
            raise SourceError(f"spacemouse: {error}; was it unplugged?") from error
        if state.t != self._stamp:
            self._stamp, self._moved_s = state.t, view.now_s
        axes = np.array([state.x, state.y, state.z, state.roll, state.pitch, state.yaw], dtype=np.float64)
        axes = np.where(np.abs(axes) < _DEAD_ZONE, 0.0, np.clip(axes, -1.0, 1.0))
        pressed, before = bool(state.buttons and state.buttons[0]), self._pressed
        self._pressed = pressed
        moves = axes.any() and view.now_s - self._moved_s <= _SILENT_S
        return Reading(events=("gripper",) if pressed and not before else (), twist=axes if moves else None)

    def _newest(self) -> Any:
        state = self._device.read()
        for _ in range(_QUEUED):
            stamp = state.t
            state = self._device.read()
            if state.t == stamp:
                break
        return state

    def close(self) -> None:
        """Closes the device."""
        device, self._device = self._device, None
        if device is not None:
            device.close()
