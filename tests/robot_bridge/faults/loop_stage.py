"""A control loop in the stage of the faults, without ROS: an arm that follows perfectly, a driver's thread in line, a clock by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from robot_bridge.arms.base import ArmState
from robot_bridge.control.clock import ManualClock
from robot_bridge.control.command import JointCommand
from robot_bridge.control.filter import CommandFilter
from robot_bridge.control.holds import GuardReport
from robot_bridge.control.limits import ArmLimits
from robot_bridge.control.loop import ControlLoop
from robot_bridge.control.settings import FilterSettings
from robot_bridge.faults.catalogue import Fault
from robot_bridge.faults.judge import Cell, judge
from robot_bridge.faults.run import inject_all
from robot_bridge.faults.sender import Measured, Sender
from robot_bridge.faults.spoilt_arm import SpoiltArm
from robot_bridge.faults.trace import Mark, Trace

GUARD = "fault_guard"
_STEP_S = 0.01
_GUARD_S = 0.2


class IdealArm:
    """Is where it was sent."""

    def __init__(self, limits: ArmLimits, clock: ManualClock) -> None:
        self.limits, self.joint_names = limits, limits.names
        self.positions = (np.array(limits.position_min) + np.array(limits.position_max)) / 2 - 0.1 * np.eye(len(limits.names))[0]
        self._clock = clock

    def connect(self) -> None: ...

    def read(self) -> ArmState:
        return ArmState(
            stamp_ns=self._clock.now_ns, names=self.joint_names, positions=self.positions.copy(),
            velocities=np.zeros(len(self.joint_names)), ee_pos=np.zeros(3), ee_quat=np.array([0.0, 0.0, 0.0, 1.0]),
        )  # fmt: skip

    def command(self, positions: np.ndarray, period_s: float) -> None:
        self.positions = positions.copy()

    def stop(self) -> None: ...

    def close(self) -> None: ...


class InlineDriver:
    """`DriverThread`'s calls in line; a call that blocks is one that is not made."""

    def __init__(self, arm: IdealArm, spoilt: SpoiltArm, clock: ManualClock) -> None:
        self._arm, self._spoilt, self._clock = arm, spoilt, clock
        self._command: np.ndarray | None = None
        self._blocked_ns: int | None = None
        self.latest = arm.read()
        self.error: str | None = None

    @property
    def blocked_s(self) -> float:
        return 0.0 if self._blocked_ns is None else (self._clock.now_ns - self._blocked_ns) / 1e9

    def send(self, positions: np.ndarray) -> None:
        self._command = positions

    def discard(self) -> None:
        self._command = None

    def run(self, tell: Any) -> None:
        """What the thread does between two ticks."""
        if self._spoilt.mode == "blocked":
            if self._blocked_ns is None:
                self._blocked_ns = self._clock.now_ns
                tell("blocked")
            return
        self._blocked_ns = None
        command, self._command = self._command, None
        try:
            if self.error:
                self._arm.connect()
            elif command is not None:
                self._arm.command(command, _STEP_S)
            self.latest, self.error = self._arm.read(), None
        except Exception as error:
            self.error = str(error)


class LoopStage:
    """See `robot_bridge.faults.run.Stage`."""

    def __init__(self, limits: ArmLimits) -> None:
        self.clock = ManualClock(now_ns=100 * 10**9)
        self.limits = limits
        self.settings = FilterSettings(required_guards=(GUARD,))
        self.sender = Sender(limits, self.settings.policy_period_s, sender="a")
        self._other = Sender(limits, self.settings.policy_period_s, sender="b", joint=1)
        self._arm = IdealArm(limits, self.clock)
        self._spoilt = SpoiltArm(self._arm, self._mark)
        self.loop = ControlLoop(arm=self._arm, filter=CommandFilter(limits, self.settings, now_ns=self.clock.now_ns), clock=self.clock)
        self._driver = InlineDriver(self._arm, self._spoilt, self.clock)
        self._marks: list[Mark] = []
        self._outputs: list[tuple[int, np.ndarray]] = []
        self._guard: bool | None = False  # whether it says hold; None: silent
        self._guard_due_ns = 0
        self.loop.restart()

    def now_ns(self) -> int:
        return self.clock.now_ns

    def measured(self) -> Measured:
        state = self._driver.latest
        return Measured(stamp_ns=state.stamp_ns, positions=state.positions)

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds / _STEP_S)):
            self._tick()

    def wait_motion(self, timeout_s: float) -> bool:
        start = self._outputs[-1][1] if self._outputs else self.measured().positions
        for _ in range(round(min(timeout_s, 1.0) / _STEP_S)):
            self._tick()
            if abs(self._outputs[-1][1] - start)[self.sender.joint] > 0.1:
                return True
        return False

    def ready(self, fault: Fault) -> None:
        self._guard = False
        self.wait(0.1)
        if self.loop.status().state in ("stopped", "fault"):
            self.wait(1.2)  # an e-stop was pressed
            assert self.loop.rearm() is None
        self.loop.release("policy", "a")
        assert self.loop.take("policy", "a") is None

    def start(self, fault: Fault) -> None:
        self.sender.start(self.measured(), self.now_ns())

    def inject(self, fault: Fault) -> int:
        now_ns = self.now_ns()
        match fault.place:
            case "command":
                self.sender.spoil(fault.spoil)
            case "sender":
                self.sender.stop()
            case "second_sender":
                self._other.start(self.measured(), now_ns)
            case "guard":
                self._guard = None if fault.mode == "silent" else True
                self._guard_due_ns = now_ns
            case "button":
                self._mark("e_stop")
                self.loop.e_stop(True, "button")
            case _:
                self._spoilt.spoil(fault.mode)
        return now_ns

    def clear(self, fault: Fault) -> None:
        self.sender.spoil(None)
        self._other.stop()
        self._guard = False
        self._spoilt.spoil("")
        self._driver.run(self._mark)

    def trace(self) -> Trace:
        stamps, positions = zip(*self._outputs, strict=True)
        return Trace(names=self.limits.names, stamps_ns=np.array(stamps), positions=np.array(positions), marks=tuple(self._marks))

    def _mark(self, event: Any, detail: str = "") -> None:
        self._marks.append(Mark(stamp_ns=self.clock.now_ns, event=event, detail=detail))

    def _receive(self, command: JointCommand) -> None:
        refusal = self.loop.receive(command)
        event = "taken" if refusal is None else "denied" if refusal.reason == "no_authority" else "refused"
        self._mark(event, "" if refusal is None else refusal.reason)

    def _tick(self) -> None:
        for sender in (self.sender, self._other):
            for command in sender.step(self.measured(), self.now_ns()):
                self._receive(command)
        if self._guard is not None and self.now_ns() >= self._guard_due_ns:
            self._guard_due_ns = self.now_ns() + round(_GUARD_S * 1e9)
            self.loop.guard(GuardReport(name=GUARD, hold=self._guard))
            self._mark("guard_hold" if self._guard else "guard")
        self.clock.advance(_STEP_S)
        self.loop._real_time_tick(self._driver)  # type: ignore[arg-type]
        self._driver.run(self._mark)
        self._outputs += [(period.stamp_ns, period.output.positions) for period in self.loop.drain()]


def table(limits: ArmLimits, faults: Iterable[Fault]) -> list[Cell]:
    """The cells of an arm with `limits`."""
    stage = LoopStage(dataclasses.replace(limits))
    injections = inject_all(stage, faults)
    trace = stage.trace()
    return [judge(trace, injection, stage.limits, stage.settings) for injection in injections]
