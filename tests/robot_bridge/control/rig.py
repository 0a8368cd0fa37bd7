"""A command filter on a bench: a planar arm of two joints and a gripper that follows its output perfectly, and a clock by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from rl_core.contract import Gripper
from robot_bridge.arms.base import ArmState
from robot_bridge.control.command import JointCommand, Refusal
from robot_bridge.control.filter import CommandFilter, FilterOutput
from robot_bridge.control.limits import ArmLimits
from robot_bridge.control.settings import FilterSettings

NAMES = ("shoulder", "elbow", "gripper")
SENDER = "gid-1"
PERIOD_S = 0.01


def bench_limits(**changes: Any) -> ArmLimits:
    """Limits of the bench arm; the workspace box is wider than its reach unless changed."""
    limits = ArmLimits(
        names=NAMES,
        position_min=(-2.0, -2.0, 0.0),
        position_max=(2.0, 2.0, 0.08),
        velocity=(2.0, 1.0, 0.1),
        acceleration=(8.0, 4.0, 2.0),
        jerk=(3000.0, 1500.0, 400.0),
        stop_acceleration=(16.0, 8.0, 4.0),
        stop_jerk=(6000.0, 3000.0, 2000.0),
        max_lead=(0.5, 0.5, 0.1),
        workspace_min=(-2.0, -2.0, -1.0),
        workspace_max=(2.0, 2.0, 1.0),
        max_orientation_step=1.2,
        max_force=20.0,
        max_torque=5.0,
        gripper=Gripper(name="gripper", open=0.08, closed=0.0),
    )
    return dataclasses.replace(limits, **changes)


def planar(joints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two links of 0.5 m in the x-y plane, turned about z."""
    first, second = joints[0], joints[0] + joints[1]
    position = 0.5 * np.array([np.cos(first) + np.cos(second), np.sin(first) + np.sin(second), 0.0])
    return position, np.array([0.0, 0.0, np.sin(second / 2), np.cos(second / 2)])


class Rig:
    """Filter, arm and clock. `source_offset_ns` is how far the clock of stamps is from the monotonic one."""

    def __init__(self, start: Sequence[float] = (0.0, 0.0, 0.04), *, limits: ArmLimits | None = None, **settings: Any) -> None:
        self.limits = limits or bench_limits()
        self.now_ns = 10_000_000_000
        self.source_offset_ns = 1_700_000_000_000_000_000
        self.filter = CommandFilter(self.limits, FilterSettings(**settings), forward=planar, now_ns=self.now_ns)
        self.position = np.array(start, dtype=np.float64)
        self.wrench: np.ndarray | None = None
        self.outputs: list[FilterOutput] = []
        self.restart()
        self.filter.authority.take("policy", self.now_ns, SENDER)

    def restart(self) -> None:
        self.filter.restart(self.measured(), self.now_ns)

    @property
    def source_ns(self) -> int:
        return self.now_ns + self.source_offset_ns

    def measured(self) -> ArmState:
        pos, quat = planar(self.position[:2])
        return ArmState(
            stamp_ns=self.source_ns,
            names=self.limits.names,
            positions=self.position.copy(),
            velocities=np.zeros(3),
            ee_pos=pos,
            ee_quat=quat,
            wrench=self.wrench,
        )

    def command(
        self,
        positions: Any,
        *,
        times: Sequence[float] = (0.1,),
        names: Sequence[str] = NAMES,
        age_s: float = 0.0,
        offset_s: float = 0.0,
        sender: str = SENDER,
        source: str = "policy",
    ) -> JointCommand:
        """A command whose oldest observation is `age_s` old."""
        return JointCommand(
            stamp_ns=self.source_ns - round(age_s * 1e9),
            source=source,
            sender=sender,
            names=tuple(names),
            positions=np.atleast_2d(np.asarray(positions, dtype=np.float64)),
            time_from_start_s=np.asarray(times),
            offset_s=offset_s,
        )

    def send(self, positions: Any, **keywords: Any) -> Refusal | None:
        return self.receive(self.command(positions, **keywords))

    def reason(self, positions: Any, **keywords: Any) -> str | None:
        """Why a command is refused; None when it is taken."""
        refusal = self.send(positions, **keywords)
        return refusal.reason if refusal else None

    def receive(self, command: JointCommand) -> Refusal | None:
        return self.filter.receive(command, self.now_ns, self.source_ns)

    def tick(self, periods: int = 1) -> FilterOutput:
        """Lets control periods pass; the arm is where it was sent."""
        for _ in range(periods):
            output = self.filter.step(self.measured(), self.now_ns, self.source_ns)
            self.outputs.append(output)
            self.position = output.positions.copy()
            self.now_ns += round(PERIOD_S * 1e9)
        return output

    def wait(self, seconds: float) -> FilterOutput:
        return self.tick(round(seconds / PERIOD_S))

    def stream(self, positions: Any, seconds: float, **keywords: Any) -> list[Refusal | None]:
        """Sends the same goal at 20 Hz, each message within reach of the output, and lets time pass."""
        refusals = []
        for _ in range(round(seconds / 0.05)):
            step = np.clip(np.asarray(positions) - self.position, -0.4, 0.4)
            refusals.append(self.send(self.position + step, **keywords))
            self.tick(5)
        return refusals

    def drive(self, goal: Any = (0.6, 0.3, 0.04), seconds: float = 0.4) -> FilterOutput:
        """Brings the arm into motion towards `goal`; fails if it does not move."""
        assert self.stream(goal, seconds)[-1] is None
        assert self.outputs[-1].state == "moving"
        assert np.abs(self.outputs[-1].velocities[:2]).max() > 0.1
        return self.outputs[-1]

    def trace(self, since: int = 0) -> np.ndarray:
        """(T, J) positions sent since output number `since`."""
        return np.array([output.positions for output in self.outputs[since:]])

    def rates(self, since: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Largest velocity, acceleration and jerk (J,) by finite differences of what was sent."""
        velocity = np.diff(self.trace(since), axis=0) / PERIOD_S
        acceleration = np.diff(velocity, axis=0) / PERIOD_S
        jerk = np.diff(acceleration, axis=0) / PERIOD_S
        return tuple(np.abs(rate).max(axis=0, initial=0.0) for rate in (velocity, acceleration, jerk))  # type: ignore[return-value]
