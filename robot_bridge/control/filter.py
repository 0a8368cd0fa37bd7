"""CommandFilter: every command to any arm goes through it, and what leaves it is all that a driver is ever sent."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from robot_bridge.arms.base import ArmState
from robot_bridge.control import admission
from robot_bridge.control.authority import Authority
from robot_bridge.control.boundary import Forward
from robot_bridge.control.command import JointCommand, Refusal
from robot_bridge.control.estop import EStop
from robot_bridge.control.holds import Holds
from robot_bridge.control.limits import ArmLimits
from robot_bridge.control.names import order_by_name
from robot_bridge.control.output import Output
from robot_bridge.control.reading import Reading
from robot_bridge.control.settings import FilterSettings
from robot_bridge.control.speed_scale import SpeedScale
from robot_bridge.control.wrench import WrenchGuard

State = Literal["moving", "holding", "stopped", "fault"]


@dataclass(frozen=True, kw_only=True, eq=False)
class FilterOutput:
    """One control period.

    Attributes:
        positions: (J,) what goes to the driver, in the order of the limits' names.
        velocities: (J,) of the output.
        target: (J,) where the newest command was let through to, limits applied; the output itself while nothing is followed.
        state: `moving` while a command is followed, else `holding`, `stopped` (e-stop) or `fault`.
        reason: why the arm is not moving; empty while it moves.
        limited: what limited or stopped the motion in this period.
    """

    positions: NDArray[np.float64]
    velocities: NDArray[np.float64]
    target: NDArray[np.float64]
    state: State
    reason: str
    limited: frozenset[str]


class CommandFilter:
    """Judges commands, keeps the output within all limits, and brings it to rest when nothing valid is left to follow.

    Not thread-safe but for `estop.receive`; the control loop serialises the rest. Times are nanoseconds: `now_ns` monotonic
    (ages of what was received), `source_ns` on the clock of stamps.

    Args:
        limits: the arm's limits.
        settings: times and rules.
        forward: forward kinematics for workspace box and orientation step; None for an arm without end effector.
        now_ns: monotonic time of construction.
    """

    def __init__(
        self, limits: ArmLimits, settings: FilterSettings | None = None, *, forward: Forward | None = None, now_ns: int = 0
    ) -> None:
        self.limits = limits
        self.settings = settings or FilterSettings()
        self.authority = Authority()
        self.estop = EStop(self.settings.required_estops, now_ns=now_ns)
        self.holds = Holds(self.settings.required_guards)
        self.speed_scale = SpeedScale(required=self.settings.separation_required)
        self.wrench = WrenchGuard(limits)
        self.counts: Counter[str] = Counter()
        self.last_refusal: Refusal | None = None
        self._output = Output(limits, self.settings, forward)
        self._fault: str | None = None
        self._suspended: str | None = None
        self._reading = Reading(limits)
        self._may_be_aside = True  # an operator has just armed: the arm may have been moved by hand
        self._forget("not started")

    def _forget(self, reason: str) -> None:
        self._reason = reason
        self._pending: tuple[JointCommand, int] | None = None
        self._cuts: set[str] = set()
        self._last_stamp_ns: int | None = None
        self._must_rest = False
        self._epoch = self.authority.epoch

    def restart(self, measured: ArmState, now_ns: int) -> None:
        """Begins anew, standing at the measured pose (a world was reset, an arm was connected); nobody has authority.

        E-stop, fault and holds stay as they are.

        Raises:
            JointNameError: the measured names do not fit the limits'.
        """
        self.authority.revoke()
        self._reading.restart(measured)
        self._output.restart(self._reading.newest, now_ns)
        self._may_be_aside = True
        self._forget("no command yet")

    def receive(self, command: JointCommand, now_ns: int, source_ns: int) -> Refusal | None:
        """Takes or refuses a command received at `now_ns`; one of the holder of authority that is refused makes the arm hold.

        Returns:
            None when taken, else the reason; it is counted and kept as `last_refusal`.
        """
        denied = self.authority.check(command.source, command.sender, now_ns)
        if denied:
            return self._refused(Refusal(reason="no_authority", detail=denied))
        self._follow_authority()
        refusal = self._blocked(now_ns, source_ns) or admission.judge(
            command,
            admission.Situation(
                limits=self.limits,
                settings=self.settings,
                source_ns=source_ns,
                last_stamp_ns=self._last_stamp_ns,
                output=self._reading.newest if self._output.resting else np.array(self._output.motion.position),
            ),
        )
        if refusal:
            self._drop(f"command refused: {refusal.reason}")
            return self._refused(refusal)
        self._last_stamp_ns = command.stamp_ns
        self._pending = command, now_ns
        return None

    def step(self, measured: ArmState, now_ns: int, source_ns: int) -> FilterOutput:
        """The output that is to be reached one control period after `now_ns`; all times are nanoseconds."""
        self._measure(measured)
        self._follow_authority()
        if self._pending is not None and (aside := self._aside()):
            self.fault(aside)
        state, reason = self._gate(now_ns, source_ns)
        scale = self.speed_scale.scale(now_ns)
        if state != "moving":
            self._drop(reason)
            self._must_rest = True
            if state != "holding":
                self.authority.revoke()
        elif self._pending is not None:
            self._accept(now_ns, scale)
        elif self._output.target is not None and now_ns >= self._output.target.expires_ns:
            self._drop("no command in time")
        limited = self._output.advance(now_ns, scale) | self._cuts
        self.counts.update(limited)
        target, motion = self._output.target, self._output.motion
        return FilterOutput(
            positions=np.array(motion.position),
            velocities=np.array(motion.velocity),
            target=np.array(target.points[0] if target else motion.position),
            state=state if state != "moving" else "moving" if target else "holding",
            reason="" if target else self._reason,
            limited=frozenset(limited),
        )

    def state(self, now_ns: int, source_ns: int) -> tuple[State, str, bool]:
        """The state now, why it does not move (empty while it does), and whether a command of the holder of authority would be followed."""
        state, reason = self._gate(now_ns, source_ns)
        accepts = state == "moving" and self.authority.holder is not None and not (self._must_rest and not self._output.resting)
        if state != "moving":
            return state, reason, accepts
        return ("moving", "", accepts) if self._output.target else ("holding", self._reason, accepts)

    def active_holds(self, now_ns: int, source_ns: int) -> dict[str, str]:
        """Name -> reason of everything that makes the arm wait and is neither e-stop nor fault."""
        holds = self.holds.active(now_ns, source_ns)
        if reason := self.speed_scale.hold(now_ns):
            holds["separation"] = reason
        if reason := self.wrench.hold:
            holds["wrench"] = reason
        if self._suspended:
            holds["driver"] = self._suspended
        return holds

    def suspend(self, reason: str) -> None:
        """The arm does not take what is sent: a hold named `driver` until `resume`."""
        self._suspended = reason

    def resume(self, measured: ArmState, now_ns: int) -> None:
        """The arm takes commands again. It stayed behind the output, so the output stands where the arm is, not the other way round.

        That is between the last plausible reading before and the output; from anywhere else only an operator lets it go on.
        """
        self._suspended = None
        before = self._reading.plausible
        self._measure(measured)
        self._drop("the arm did not take commands for a while")
        if aside := self._reading.aside(before, np.array(self._output.motion.position)):
            self.fault(aside)
        else:
            self._output.restart(self._reading.newest, now_ns)

    def clear_hold(self, name: str, now_ns: int) -> str | None:
        """An operator ends a hold by name; returns None when done, else why not."""
        return self.wrench.clear() if name == "wrench" else self.holds.clear(name, now_ns)

    def fault(self, reason: str) -> None:
        """Latches a fault (arm lost, driver error); only a rearm ends it."""
        self._fault = self._fault or reason

    def rearm(self, now_ns: int, source_ns: int) -> str | None:
        """Ends e-stop and fault; returns None when armed, else why not.

        A sender must take authority anew, and its first command starts from the measured pose.
        """
        refused = self.estop.rearm(now_ns, self.active_holds(now_ns, source_ns))
        if refused:
            return refused
        self._fault = None
        self.authority.revoke()
        self._drop("armed, but no sender has authority")
        self._must_rest = True
        self._may_be_aside = True
        self._reading.trust()
        return None

    def _measure(self, measured: ArmState) -> None:
        if unusable := self._reading.take(measured, self._output.motion, by_hand=self._may_be_aside):
            self.fault(unusable)
            return
        self.wrench.measure(measured.wrench)

    def _gate(self, now_ns: int, source_ns: int) -> tuple[State, str]:
        """`moving` where commands may be followed, else the state they are blocked by, and why."""
        if self._fault:
            return "fault", self._fault
        if reason := self.estop.stopped(now_ns):
            return "stopped", reason
        if holds := self.active_holds(now_ns, source_ns):
            return "holding", "; ".join(f"{name}: {why}" for name, why in holds.items())
        return "moving", ""

    def _blocked(self, now_ns: int, source_ns: int) -> Refusal | None:
        state, reason = self._gate(now_ns, source_ns)
        if state == "stopped" or state == "fault":
            return Refusal(reason=state, detail=reason)
        if state == "holding":
            return Refusal(reason="held", detail=reason)
        if self._must_rest and not self._output.resting:
            return Refusal(reason="not_at_rest", detail="the arm comes to rest before it may start again")
        if aside := self._aside():
            self.fault(aside)
            return Refusal(reason="fault", detail=aside)
        return None

    def _aside(self) -> str | None:
        """Why the arm may not start from where it is measured: it would be sent there in one period, and the reading may be wrong."""
        if not self._output.resting:
            return None
        return self._reading.aside(self._reading.plausible if self._may_be_aside else np.array(self._output.motion.position))

    def _follow_authority(self) -> None:
        if self.authority.epoch != self._epoch:
            self._epoch = self.authority.epoch
            self._drop("authority has changed hands")
            self._must_rest = True

    def _refused(self, refusal: Refusal) -> Refusal:
        self.counts[refusal.reason] += 1
        self.last_refusal = refusal
        return refusal

    def _drop(self, reason: str) -> None:
        self._pending = None
        self._cuts = set()
        self._reason = reason
        self._output.drop()

    def _accept(self, now_ns: int, scale: float) -> None:
        assert self._pending is not None
        command, received_ns = self._pending
        self._pending = None
        self._must_rest = False
        self._may_be_aside = False
        if self._output.resting:
            self._output.restart(self._reading.newest, now_ns)
        points = command.positions[:, order_by_name(command.names, self.limits.names)]
        self._cuts = self._output.follow(points, command.time_from_start_s, received_ns, now_ns, scale)
