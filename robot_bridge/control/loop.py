"""ControlLoop: arm, command filter and clock, one control period after the other; the same for real time, lockstep and in-process."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass

from robot_bridge.arms.base import Arm, ArmState
from robot_bridge.arms.driver_thread import DriverThread
from robot_bridge.control.authority import Holder
from robot_bridge.control.clock import Clock
from robot_bridge.control.command import JointCommand, Refusal
from robot_bridge.control.filter import CommandFilter, FilterOutput, State
from robot_bridge.control.holds import GuardReport

_KEPT_PERIODS = 1000
STALL_PERIODS = 5  # a driver call longer than this: the arm has stayed behind what was sent


@dataclass(frozen=True, kw_only=True, eq=False)
class Period:
    """One control period: what was measured at its start and what was sent to the driver; `stamp_ns` is source time."""

    stamp_ns: int
    measured: ArmState
    output: FilterOutput


@dataclass(frozen=True, kw_only=True)
class LoopStatus:
    """What `arm/status` says.

    Attributes:
        state: `moving`, `holding`, `stopped` or `fault`.
        reason: why it does not move; empty while it moves.
        accepts: whether a command of the holder of authority would be followed now.
        holds: name -> reason of active holds.
        counts: how often each refusal and each limit was met; `missed_deadline` for the loop's own.
        last_refusal: the newest one.
        authority: who may command.
        speed_scale: factor on the velocity limits.
        released: nobody has authority, and the last holder gave it back by itself.
        rearms: how often an operator ended an e-stop or fault.
    """

    state: State
    reason: str
    accepts: bool
    holds: Mapping[str, str]
    counts: Mapping[str, int]
    last_refusal: Refusal | None
    authority: Holder | None
    speed_scale: float
    released: bool
    rearms: int


class ControlLoop:
    """Runs an arm. Every public method may be called from any thread and waits at most for one filter step, never for the arm.

    In lockstep (`lockstep_step`) the arm's calls are made in line and time is the caller's. In real time (`start`) the loop has
    its own thread with monotonic deadlines and the arm's calls run on another (`DriverThread`).

    Args:
        arm: connected by `start` or the caller; its limits are the filter's.
        filter: the command filter; its settings give the control period.
        clock: for ages and stamps.
        driver_timeout_s: a driver call longer than this is a lost arm.
    """

    def __init__(self, *, arm: Arm, filter: CommandFilter, clock: Clock, driver_timeout_s: float = 0.5) -> None:
        if arm.limits != filter.limits:
            raise ValueError(f"the filter's limits are of {filter.limits.names}, not those of the arm {arm.joint_names}")
        self.arm = arm
        self.filter = filter
        self.clock = clock
        self._driver_timeout_s = driver_timeout_s
        self._period_s = filter.settings.control_period_s
        self._lock = threading.Lock()
        self._periods: deque[Period] = deque(maxlen=_KEPT_PERIODS)
        self._missed = 0
        self._rearms = 0
        self._halted = False
        self._stalled = False
        self._driver: DriverThread | None = None
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    # -- what others say ------------------------------------------------------------------------------------------------

    def receive(self, command: JointCommand) -> Refusal | None:
        """A command, just received; returns None when taken."""
        with self._lock:
            return self.filter.receive(command, self.clock.monotonic_ns(), self.clock.source_ns())

    def e_stop(self, pressed: bool, sender: str) -> None:
        """`/e_stop`; waits for nothing."""
        self.filter.estop.receive(pressed, sender, self.clock.monotonic_ns())

    def guard(self, report: GuardReport) -> None:
        """One entry of `safety/holds`."""
        with self._lock:
            self.filter.holds.receive(report, self.clock.monotonic_ns())

    def speed(self, value: float, sender: str) -> None:
        """`safety/speed_scale`."""
        with self._lock:
            self.filter.speed_scale.receive(value, sender, self.clock.monotonic_ns())

    def take(self, source: str, sender: str | None = None) -> str | None:
        """Asks for authority; returns None when granted, else why not."""
        with self._lock:
            return self.filter.authority.take(source, self.clock.monotonic_ns(), sender)

    def release(self, source: str, sender: str | None = None) -> str | None:
        """Gives authority back; returns None when done, else why not."""
        with self._lock:
            return self.filter.authority.release(source, sender)

    def clear_hold(self, name: str) -> str | None:
        """An operator ends a hold; returns None when done, else why not."""
        with self._lock:
            return self.filter.clear_hold(name, self.clock.monotonic_ns())

    def rearm(self) -> str | None:
        """An operator ends e-stop or fault; returns None when armed, else why not."""
        driver = self._driver
        if driver is not None and (driver.error or driver.blocked_s > self._driver_timeout_s):
            return f"the arm does not answer: {driver.error or 'a driver call is blocked'}"
        with self._lock:
            refused = self.filter.rearm(self.clock.monotonic_ns(), self.clock.source_ns())
            self._halted = self._halted and refused is not None
            self._rearms += refused is None
            return refused

    def fault(self, reason: str) -> None:
        """Something outside that motion may only go on after when an operator rearms (a second arm under the same names)."""
        with self._lock:
            self.filter.fault(reason)

    def status(self) -> LoopStatus:
        """The state now."""
        with self._lock:
            now_ns, filter_ = self.clock.monotonic_ns(), self.filter
            state, reason, accepts = filter_.state(now_ns, self.clock.source_ns())
            return LoopStatus(
                state=state,
                reason=reason,
                accepts=accepts,
                holds=filter_.active_holds(now_ns, self.clock.source_ns()),
                counts=filter_.counts + Counter(missed_deadline=self._missed),
                last_refusal=filter_.last_refusal,
                authority=filter_.authority.holder,
                speed_scale=filter_.speed_scale.scale(now_ns),
                released=filter_.authority.released,
                rearms=self._rearms,
            )

    def drain(self) -> list[Period]:
        """The periods since the last call, oldest first (`arm/applied`, `joint_states`); at most the newest 1000."""
        periods = []
        while self._periods:
            periods.append(self._periods.popleft())
        return periods

    # -- in line: lockstep and in-process -------------------------------------------------------------------------------

    def restart(self) -> ArmState:
        """Begins anew from the measured pose (the world was reset); nobody has authority. Returns the measured state."""
        measured = self.arm.read()
        with self._lock:
            self.filter.restart(measured, self.clock.monotonic_ns())
        self._periods.clear()
        return measured

    def tick(self) -> Period:
        """One control period in line: read, filter, command. The caller moves the clock.

        Raises:
            ArmLost: the arm does not answer; the filter is in fault.
        """
        try:
            measured = self.arm.read()
            period = self._step(measured)
            self.arm.command(period.output.positions, self._period_s)
        except Exception as error:
            self._fault(error)
            raise
        if self._must_halt(period.output):
            self.arm.stop()
        return period

    def lockstep_step(self, command: JointCommand | None = None) -> tuple[Refusal | None, tuple[Period, ...]]:
        """One policy period in line: the command is received, then every control period of a policy period runs.

        The clock is one that the arm's commands move on (`SimulatedArm.clock`).
        """
        refusal = self.receive(command) if command is not None else None
        ticks = round(self.filter.settings.policy_period_s / self._period_s)
        return refusal, tuple(self.tick() for _ in range(ticks))

    # -- real time ------------------------------------------------------------------------------------------------------

    def start(self, *, factor: float = 1.0) -> None:
        """Connects and runs until `close`: a control period every control_period_s / `factor` of wall time.

        Raises:
            ArmLost: the arm cannot be connected.
        """
        self.arm.connect()
        self.restart()
        self._driver = DriverThread(self.arm, self._period_s)
        self._driver.start()
        self._thread = threading.Thread(target=self._run, args=(self._driver, self._period_s / factor), name="arm-control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread, then the connection."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(1.0)
        if self._driver is not None:
            self._driver.close()
        self.arm.close()

    def _run(self, driver: DriverThread, period_s: float) -> None:
        deadline = time.monotonic() + period_s
        while not self._closing.wait(max(deadline - time.monotonic(), 0.0)):
            late_s = time.monotonic() - deadline
            if late_s > period_s:
                self._missed += int(late_s / period_s)
                deadline += int(late_s / period_s) * period_s
            deadline += period_s
            self._real_time_tick(driver)

    def _real_time_tick(self, driver: DriverThread) -> None:
        blocked_s, error = driver.blocked_s, driver.error
        if error:
            self._fault(RuntimeError(error))
        elif blocked_s > self._driver_timeout_s:
            self._fault(TimeoutError(f"a driver call has not returned for {blocked_s:.2f} s"))
        measured = driver.latest
        if measured is None:
            return
        stalled = error is not None or blocked_s > STALL_PERIODS * self._period_s
        try:
            self._follow_stall(stalled, measured)
            period = self._step(measured)
        except Exception as failure:  # a loop that died would leave the arm without its filter
            self._fault(failure)
            driver.discard()
            return
        if stalled:
            driver.discard()
        else:
            driver.send(period.output.positions)
        if self._must_halt(period.output):
            # Not on the driver's thread: a call there may be blocked.
            threading.Thread(target=self._halt, name="arm-stop", daemon=True).start()

    def _follow_stall(self, stalled: bool, measured: ArmState) -> None:
        """Never hands the arm at once what it missed while it did not listen."""
        with self._lock:
            if stalled:
                self.filter.suspend("the arm does not take commands")
            elif self._stalled:
                self.filter.resume(measured, self.clock.monotonic_ns())
        self._stalled = stalled

    # -- shared ---------------------------------------------------------------------------------------------------------

    def _step(self, measured: ArmState) -> Period:
        with self._lock:
            source_ns = self.clock.source_ns()
            output = self.filter.step(measured, self.clock.monotonic_ns(), source_ns)
        period = Period(stamp_ns=source_ns, measured=measured, output=output)
        self._periods.append(period)
        return period

    def _fault(self, error: Exception) -> None:
        self.fault(f"{type(error).__name__}: {error}")

    def _must_halt(self, output: FilterOutput) -> bool:
        """Once per e-stop, when the output has come to rest; once per fault, at once."""
        if self._halted or not (output.state == "fault" or (output.state == "stopped" and not output.velocities.any())):
            return False
        self._halted = True
        return True

    def _halt(self) -> None:
        try:
            self.arm.stop()
        except Exception as error:  # reported; the arm is stopped already as far as the filter goes
            self._fault(error)
