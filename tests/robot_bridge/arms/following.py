"""Drives an arm through the real control loop and command filter: a small sine of one joint, commands at 20 Hz, output at 100 Hz.

`python -m tests.robot_bridge.arms.following NAME HOST` does so for ever, in a process that a test can kill.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_bridge.arms.base import Arm, ArmState
from robot_bridge.arms.registry import make_arm, make_settings
from robot_bridge.control.command import JointCommand
from robot_bridge.control.filter import CommandFilter
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.control.limits import ArmLimits
from robot_bridge.control.loop import ControlLoop, Period
from robot_bridge.control.settings import FilterSettings
from robot_bridge.nodes.clocks import ScaledClock

STEP_S = 0.05


class Following:
    """See the module.

    Args:
        arm: with a `description`.
        factor: speed of the loop: that of a simulator which is slower than a clock.
    """

    def __init__(self, arm: Arm, factor: float = 1.0) -> None:
        clock = ScaledClock(factor)
        forward = Kinematics(arm.description).fk  # type: ignore[attr-defined]
        settings = FilterSettings(max_observation_age_s=2.0)
        self.arm, self.clock, self.factor = arm, clock, factor
        filter = CommandFilter(arm.limits, settings, forward=forward, now_ns=clock.monotonic_ns())
        self.loop = ControlLoop(arm=arm, filter=filter, clock=clock, driver_timeout_s=20.0)
        self.periods: list[Period] = []
        self.refusals: list[str] = []

    def start(self) -> None:
        self.loop.start(factor=self.factor)
        assert self.loop.take("policy", "test") is None
        self.periods = wait(self.loop.drain, "a first period")
        self.begin = np.array(self.periods[-1].measured.positions)

    def send(self, offset: float, joint: int = 0) -> None:
        """Commands `joint` to where it was at the start plus `offset` rad, the others to where they were."""
        target = self.begin.copy()
        target[joint] += offset
        command = JointCommand(
            stamp_ns=self.clock.source_ns(), source="policy", sender="test", names=self.arm.joint_names,
            positions=target[None], time_from_start_s=np.array([2 * STEP_S]),
        )  # fmt: skip
        refusal = self.loop.receive(command)
        if refusal is not None:
            self.refusals.append(f"{refusal.reason}: {refusal.detail}")
        self.periods += self.loop.drain()

    def swing(self, amplitude: float, period_s: float, seconds: float) -> None:
        """A sine, for `seconds` of the loop's clock."""
        steps = round(seconds / STEP_S)
        for step in range(steps):
            self.send(amplitude * math.sin(2 * math.pi * step * STEP_S / period_s))
            time.sleep(STEP_S / self.factor)  # the pace of a sender

    def close(self) -> None:
        self.loop.close()


@contextmanager
def following(arm: Arm, factor: float = 1.0) -> Iterator[Following]:
    run = Following(arm, factor)
    try:
        run.start()
        yield run
    finally:
        run.close()


def wait(what: Callable[[], Any], name: str, timeout_s: float = 60.0) -> Any:
    """The first true value of `what()`."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if value := what():
            return value
        time.sleep(0.002)
    raise AssertionError(f"{name} did not come in {timeout_s} s")


def assert_inside_limits(periods: list[Period], limits: ArmLimits, period_s: float = 0.01) -> None:
    """Every output: position, velocity, acceleration and jerk within the limits."""
    positions = np.array([period.output.positions for period in periods])
    velocities = np.array([period.output.velocities for period in periods])
    start = positions[0]  # an arm found outside its range is not pulled back
    assert (positions >= np.minimum(limits.position_min, start) - 1e-9).all()
    assert (positions <= np.maximum(limits.position_max, start) + 1e-9).all()
    assert (np.abs(velocities) <= np.array(limits.velocity) + 1e-9).all()
    changes = np.diff(velocities, axis=0) / period_s
    assert (np.abs(changes) <= np.array(limits.stop_acceleration) + 1e-6).all()
    assert (np.abs(np.diff(changes, axis=0)) / period_s <= np.array(limits.stop_jerk) + 1e-3).all()


def wait_for_rest(read: Callable[[], ArmState], moved: float = 1e-4, looks: int = 5, timeout_s: float = 60.0) -> NDArray[np.float64]:
    """Positions once `looks` readings with different stamps of the arm lie within `moved` rad; it came to rest by itself."""
    deadline = time.monotonic() + timeout_s
    seen: list[NDArray[np.float64]] = []
    while time.monotonic() < deadline:
        seen = [*seen, read().positions[:-1]][-looks:]
        if len(seen) == looks and np.ptp(np.array(seen), axis=0).max() < moved:
            return seen[-1]
        time.sleep(0.1)
    raise AssertionError(f"the arm still moves: {seen}")


def main(name: str, host: str, factor: float) -> None:
    arm = make_arm(name, make_settings(name, {"host": host}))
    with following(arm, factor) as run:
        for step in itertools.count():
            run.send(0.2 * math.sin(math.pi * step * STEP_S))
            moved = abs(run.periods[-1].measured.positions[0] - run.begin[0])
            print(f"moving, {moved:.4f}" if moved > 0.005 else "still", flush=True)
            time.sleep(STEP_S / factor)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
