"""A sender that sweeps one joint at an even speed, and whose commands can be spoilt on their way."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_bridge.control.command import JointCommand
from robot_bridge.control.limits import ArmLimits

POINTS = 4
SPEED = 0.3
"""rad/s of the swept joint, or a quarter of its velocity limit."""
_ANCHOR_RAD = 0.4  # a measured joint this far from where it was sent is where the sender goes on from


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """The newest `joint_states` as the sender knows it: positions (J,) in the order of the limits' names."""

    stamp_ns: int
    positions: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Path:
    """What a spoiler may know: commands that were sent unspoilt before, oldest first, the limits, and which joint is swept."""

    history: Sequence[JointCommand]
    limits: ArmLimits
    joint: int


Spoiler = Callable[[JointCommand, Path], list[tuple[float, JointCommand]]]
"""What arrives in place of a command: each with its delay in seconds."""


class Sender:
    """One command a policy period: a chunk of absolute points ahead of the sweep, stamped with the state it was made from.

    The sender goes on from the measured pose wherever a joint is found far from the sweep, as a policy does that sees the arm.

    Args:
        limits: of the arm.
        policy_period_s: time between two commands.
        source, sender: as in `JointCommand`.
        joint: index of the swept joint.
    """

    def __init__(self, limits: ArmLimits, policy_period_s: float, *, source: str = "policy", sender: str = "", joint: int = 0) -> None:
        self.limits, self.joint = limits, joint
        self.speed = min(SPEED, 0.25 * limits.velocity[joint])
        self.direction = 1
        self._period_ns = round(policy_period_s * 1e9)
        self._source, self._sender = source, sender
        self._lock = threading.Lock()
        self._spoil: Spoiler | None = None
        self._base: NDArray[np.float64] | None = None
        self._from_ns = self._due_ns = 0
        self._history: deque[JointCommand] = deque(maxlen=20)
        self._waiting: list[tuple[int, JointCommand]] = []

    def start(self, measured: Measured, now_ns: int) -> None:
        """Sweeps from `measured` on, towards the middle of the joint's range."""
        middle = (self.limits.position_min[self.joint] + self.limits.position_max[self.joint]) / 2
        with self._lock:
            self.direction = 1 if measured.positions[self.joint] < middle else -1
            self._base = measured.positions.copy()
            self._from_ns = self._due_ns = now_ns
            self._waiting.clear()

    def stop(self) -> None:
        """Sends nothing more."""
        with self._lock:
            self._base = None
            self._waiting.clear()

    def spoil(self, spoiler: Spoiler | None) -> None:
        """Every command from now on goes through `spoiler`; None ends that."""
        with self._lock:
            self._spoil = spoiler

    def step(self, measured: Measured, now_ns: int) -> list[JointCommand]:
        """What is to be sent now; called every few milliseconds."""
        with self._lock:
            if self._base is not None and now_ns >= self._due_ns:
                self._due_ns = max(self._due_ns + self._period_ns, now_ns - self._period_ns)
                self._make(self._base, measured, now_ns)
            due = [command for at_ns, command in self._waiting if at_ns <= now_ns]
            self._waiting = [(at_ns, command) for at_ns, command in self._waiting if at_ns > now_ns]
            return due

    def _make(self, base: NDArray[np.float64], measured: Measured, now_ns: int) -> None:
        swept = self.direction * self.speed * (now_ns - self._from_ns) / 1e9
        expected = base.copy()
        expected[self.joint] += swept
        far = np.abs(measured.positions - expected) > _ANCHOR_RAD
        base[far] += (measured.positions - expected)[far]
        times = np.arange(1, POINTS + 1) * self._period_ns / 1e9
        positions = np.tile(base, (POINTS, 1))
        positions[:, self.joint] += swept + self.direction * self.speed * times
        command = JointCommand(
            stamp_ns=measured.stamp_ns,
            source=self._source,
            sender=self._sender,
            names=self.limits.names,
            positions=positions,
            time_from_start_s=times,
        )
        arriving = [(0.0, command)]
        if self._spoil is None:
            self._history.append(command)
        else:
            arriving = self._spoil(command, Path(history=tuple(self._history), limits=self.limits, joint=self.joint))
        self._waiting += [(now_ns + round(delay_s * 1e9), late) for delay_s, late in arriving]
