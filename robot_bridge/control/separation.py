"""Speed and separation: how fast an arm may move while a person is near, and when it must hold.

With the arm's fastest point at speed v, a person who comes nearer at v_h, and t_b the time in which the arm brakes from v, the distance
that must be there when a distance is judged is

    S(v) = C + e + v_h (R + t_b(v)) + v R + b(v)

C: what must remain when the arm stands; e: how far the sensor is off at most, in 95 of 100 cases; R: what passes between the instant that
the newest distance is about and the arm's first braking; b: the way of the fastest point while it brakes. It is the protective separation
distance of ISO/TS 15066, 5.5.4, with a constant approach of the person, and with Z_r, the uncertainty of the robot's own place, in C.
The arm brakes within its stop limits (`ArmLimits`), t_b = max_j |v_j| / a_j + k and b = v (max_j |v_j| / a_j / 2 + k), where
k = max_j a_j / j_j + a control period is the time in which the braking builds up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rl_core.errors import ArmstackError
from robot_bridge.control.arm_shape import ArmShape
from robot_bridge.control.holds import GuardReport
from robot_bridge.control.limits import ArmLimits

Array = NDArray[np.float64]

_DROPPED_PERIODS = 2
"""Control periods until a hold has dropped the sender's target."""


class SeparationError(ArmstackError):
    """A setting of the separation rule that cannot be meant; names the field, what was found and what is valid."""


@dataclass(frozen=True, kw_only=True)
class SeparationSettings:
    """What is known of the cell and of the sensor that measures how near a person is.

    Attributes:
        limit_m: C: so near to a person nothing moves, metres between surfaces.
        error_m: e: 95 of 100 distances are no more than this above the true one, metres.
        latency_s: from the instant that a distance is about to its publication, and what the arm stays behind its commands, seconds.
        max_age_s: a distance counts for so long after its publication, seconds. An arm node that requires the guard holds after it, too.
        person_mps: v_h: how fast a person comes nearer, m/s; 1.6 is that of ISO 13855.
        hysteresis_m: beyond the least distance by which a hold ends and the arm is slowed, metres; more than a person comes nearer
            between two distances.
        restart_delay_s: a hold ends after nothing has called for it for so long, seconds; without it an arm in front of somebody who
            comes nearer would stop and start many times.
        max_state_age_s: of the arm's measured joints, seconds.
    """

    limit_m: float
    error_m: float
    latency_s: float
    max_age_s: float = 0.25
    person_mps: float = 1.6
    hysteresis_m: float = 0.15
    restart_delay_s: float = 0.5
    max_state_age_s: float = 0.2

    def __post_init__(self) -> None:
        for field in ("limit_m", "max_age_s", "person_mps", "hysteresis_m", "max_state_age_s"):
            if not 0 < getattr(self, field) < math.inf:
                raise SeparationError(f"{field}: {getattr(self, field)}, valid: a finite number above 0")
        for field, whose in (("error_m", "the sensor's own, "), ("latency_s", "the sensor's own, "), ("restart_delay_s", "")):
            if not 0 <= getattr(self, field) < math.inf:
                raise SeparationError(f"{field}: {getattr(self, field)}, valid: {whose}a finite number of 0 or more")


@dataclass(frozen=True, kw_only=True)
class Braking:
    """How the arm comes to rest.

    Attributes:
        speed_mps: of its fastest point, or more.
        seconds: until it stands, without what passes before it brakes.
        metres: way of the fastest point in that time, or more.
    """

    speed_mps: float
    seconds: float
    metres: float


class BrakingArm:
    """What an arm's limits say of its stopping, at any pose.

    Args:
        limits: the arm's, gripper included (which does not count: it moves by centimetres).
        shape: of the same joints without the gripper.
        period_s: of the command filter.
    """

    def __init__(self, limits: ArmLimits, shape: ArmShape, *, period_s: float) -> None:
        joints = limits.arm_joints
        self.names = limits.names[:joints]
        self.shape = shape
        self.period_s = period_s
        self.velocity, self.acceleration = np.array(limits.velocity[:joints]), np.array(limits.acceleration[:joints])
        self._stop = np.array(limits.stop_acceleration[:joints])
        self._build_up_s = float((self._stop / np.array(limits.stop_jerk[:joints])).max()) + period_s

    def braking(self, lever_arms: Array, rates: Array) -> Braking:
        """From joint speeds of at most `rates` (J,), rad/s, where `lever_arms` (P, J) are those of the pose."""
        speed = float((lever_arms @ rates).max())
        slowest_s = float((rates / self._stop).max())
        return Braking(speed_mps=speed, seconds=slowest_s + self._build_up_s, metres=speed * (slowest_s / 2 + self._build_up_s))


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What the rule says now.

    Attributes:
        reason: why the arm must hold; empty where it need not.
        scale: share of the velocity limits that is allowed; 0 while it must hold.
        distance_m: the distance it is about; NaN without a usable one.
        trigger_m: S at the speed the arm may have now; NaN where that is not known.
        speed_mps: that speed.
    """

    reason: str
    scale: float
    distance_m: float = math.nan
    trigger_m: float = math.nan
    speed_mps: float = math.nan


class Separation:
    """The rule, and what it has heard. Times are nanoseconds on the clock of stamps. Not thread-safe.

    It holds until it has heard a distance and the arm, whenever the newest distance is below S or cannot be used, and while more than one
    sender speaks. A hold ends when the distance has been above the S of a standing arm plus the hysteresis for the restart delay. Then the
    arm may have the speed whose S is the distance less the hysteresis.

    Args:
        settings: of cell and sensor.
        arm: how it brakes; None until that is known.
    """

    def __init__(self, settings: SeparationSettings, arm: BrakingArm | None = None) -> None:
        self.settings = settings
        self._distance: tuple[float, int] | None = None
        self._unusable = ""
        self._senders: dict[str, tuple[int, int]] = {}  # when the newest of each was sent, on its own clock, and when it came
        self.meet(arm)

    def meet(self, arm: BrakingArm | None) -> None:
        """The arm is this one from now on; it is not known where it is."""
        self._arm = arm
        self._state: tuple[Array, Array, int] | None = None
        self._scale, self._held = 1.0, True
        self._clear_ns: int | None = None  # since when nothing has called for the hold

    def hear_distance(
        self, distance_m: float, stamp_ns: int, *, sender: str = "", sent_ns: int | None = None, now_ns: int | None = None
    ) -> None:
        """Takes a distance; one that cannot be used holds until one comes that can, and so do several senders while they speak.

        Args:
            distance_m: between the surfaces of arm and person.
            stamp_ns: when it was published, on the clock of stamps.
            sender: who published it.
            sent_ns: when, on the sender's clock; None: `stamp_ns`. It tells the order.
            now_ns: when it came; None: `stamp_ns`. A sender whose clock is wrong speaks all the same.
        """
        sent_ns = stamp_ns if sent_ns is None else sent_ns
        now_ns = stamp_ns if now_ns is None else now_ns
        self._unusable = self._why_unusable(distance_m, sender, sent_ns)
        if not self._unusable:
            self._distance = float(distance_m), stamp_ns
        before_ns = self._senders[sender][0] if sender in self._senders else sent_ns
        speaking = {name: self._senders[name] for name in self._speaking(now_ns)}
        self._senders = {**speaking, sender: (max(before_ns, sent_ns), now_ns)}

    def _why_unusable(self, distance_m: float, sender: str, sent_ns: int) -> str:
        if not 0 <= distance_m < math.inf:
            return f"distance {distance_m} m, valid: finite, 0 or more"
        if sender in self._senders and sent_ns <= (last_ns := self._senders[sender][0]):
            return f"distance sent {(last_ns - sent_ns) * 1e-9:.3f} s before the one that came last, valid: in order"
        return ""

    def _speaking(self, now_ns: int) -> list[str]:
        """Senders that something came from within `max_age_s`."""
        return [name for name, (_, came_ns) in self._senders.items() if abs(now_ns - came_ns) <= self.settings.max_age_s * 1e9]

    def hear_arm(self, positions: Array, velocities: Array, stamp_ns: int) -> None:
        """Takes the arm's measured joints (J,), rad and rad/s, in the order of its limits."""
        self._state = positions, velocities, stamp_ns

    @property
    def judged_stamp_ns(self) -> int | None:
        """When the newest usable distance was published; None before the first."""
        return self._distance[1] if self._distance else None

    def judge(self, now_ns: int) -> Judgement:
        """What the arm may do at `now_ns`."""
        judgement = self._delayed(self._judge(now_ns), now_ns)
        self._scale, self._held = judgement.scale, bool(judgement.reason)
        return judgement

    def report(self, name: str, judgement: Judgement) -> GuardReport:
        """What the guard `name` says of a judgement."""
        return GuardReport(
            name=name,
            hold=bool(judgement.reason),
            message=judgement.reason or f"scale {judgement.scale:.2f}, person at {judgement.distance_m:.2f} m",
            judged_stamp_ns=self.judged_stamp_ns,
            max_age_s=self.settings.max_age_s,
        )

    def protective_distance(self, braking: Braking) -> float:
        """S, metres."""
        rules, seconds = self.settings, self._reaction_s()
        person = rules.person_mps * (seconds + braking.seconds)
        return rules.limit_m + rules.error_m + person + braking.speed_mps * seconds + braking.metres

    def _delayed(self, judgement: Judgement, now_ns: int) -> Judgement:
        """The same, or a hold that goes on until nothing has called for it for the restart delay."""
        if judgement.reason:
            self._clear_ns = None
            return judgement
        if self._clear_ns is None or now_ns < self._clear_ns:
            self._clear_ns = now_ns
        clear_s, delay_s = (now_ns - self._clear_ns) * 1e-9, self.settings.restart_delay_s
        if clear_s >= delay_s:
            return judgement
        return replace(judgement, reason=f"clear for {clear_s:.2f} s, motion goes on after {delay_s:g} s", scale=0.0)

    def _judge(self, now_ns: int) -> Judgement:
        if reason := self._missing(now_ns):
            return Judgement(reason=reason, scale=0.0)
        assert self._arm is not None and self._state is not None and self._distance is not None
        positions, velocities, stamp_ns = self._state
        distance, levers = self._distance[0], self._arm.shape.lever_arms(positions)
        # Since it was measured the arm may have become faster, but not beyond what was allowed last.
        age_s = (now_ns - stamp_ns) * 1e-9 + _DROPPED_PERIODS * self._arm.period_s
        measured = np.abs(velocities)
        may_be = np.minimum(measured + self._arm.acceleration * max(age_s, 0.0), np.maximum(measured, self._scale * self._arm.velocity))
        now = self._arm.braking(levers, may_be)
        standing = self.protective_distance(self._arm.braking(levers, np.zeros_like(may_be)))
        trigger = standing + self.settings.hysteresis_m if self._held else self.protective_distance(now)
        told = {"distance_m": distance, "trigger_m": trigger, "speed_mps": now.speed_mps}
        if distance < trigger:
            return Judgement(reason=f"person at {distance:.2f} m, nearer than {trigger:.2f} m", scale=0.0, **told)
        return Judgement(reason="", scale=self._fitting(distance - self.settings.hysteresis_m, standing, levers), **told)

    def _fitting(self, distance: float, standing: float, levers: Array) -> float:
        """The share s of the velocity limits at which S is `distance`: S(s) = standing + first s + second s^2."""
        assert self._arm is not None
        full = self._arm.braking(levers, self._arm.velocity)
        rest = self._arm.braking(levers, np.zeros_like(self._arm.velocity))
        slowing_s = full.seconds - rest.seconds
        second = full.speed_mps * slowing_s / 2
        first = self.protective_distance(full) - standing - second
        spare = distance - standing
        if spare <= 0:
            return 0.0
        return min(1.0, 2 * spare / (first + math.sqrt(first * first + 4 * second * spare)))

    def _reaction_s(self) -> float:
        """R, seconds."""
        assert self._arm is not None
        return self.settings.latency_s + self.settings.max_age_s + _DROPPED_PERIODS * self._arm.period_s

    def _missing(self, now_ns: int) -> str:
        """Why nothing can be said of the distance; empty where something can."""
        if self._arm is None:
            return "the arm is not known yet"
        if self._state is None:
            return "the arm's joints are not known yet"
        positions, velocities, stamp_ns = self._state
        if not (np.isfinite(positions).all() and np.isfinite(velocities).all()):
            return "the arm's measured joints are not finite"
        if not abs(age_s := (now_ns - stamp_ns) * 1e-9) <= self.settings.max_state_age_s:
            return f"the arm's measured joints are {age_s:.2f} s old, valid: within {self.settings.max_state_age_s:g} s"
        if self._unusable:
            return self._unusable
        if len(speaking := self._speaking(now_ns)) > 1:
            return f"distances from {len(speaking)} senders, {', '.join(name or 'unnamed' for name in speaking)}; valid: one"
        if self._distance is None:
            return "no distance to a person heard yet"
        if not abs(age_s := (now_ns - self._distance[1]) * 1e-9) <= self.settings.max_age_s:
            return f"the newest distance is {age_s:.2f} s old, valid: within {self.settings.max_age_s:g} s"
        return ""
