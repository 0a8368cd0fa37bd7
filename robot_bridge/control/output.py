"""Output: what is sent to the arm, always within all limits and always able to stop inside them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_bridge.control.boundary import Boundary, Forward
from robot_bridge.control.limits import ArmLimits
from robot_bridge.control.settings import FilterSettings
from robot_bridge.control.target import Target
from robot_bridge.control.trajectory import Motion, Plan, PlanError, Planner

_STANDSTILL = 1e-3  # a smaller share of the velocity limits is a standstill: plans at it would last for minutes
_RAMP_START = 0.1
_RUN_UP = 0.9  # of the speed that constant acceleration would reach: building it up takes a while


class Output:
    """Follows a target at one motion a control period, or brakes.

    With every motion goes a proven way to stand still: from it, braking at the stop limits ends inside joint range and
    workspace box. A next motion without such a way is not made; the output then brakes the way proven before (a backup
    trajectory; Wabersich and Zeilinger, "Linear model predictive safety certification", CDC 2018).
    """

    def __init__(self, limits: ArmLimits, settings: FilterSettings, forward: Forward | None) -> None:
        self._planner = Planner(limits)
        self._boundary = Boundary(limits, forward)
        self._velocity = np.array(limits.velocity)
        self._acceleration = np.array(limits.acceleration)
        self._period_ns = round(settings.control_period_s * 1e9)
        self._ramp_ns = settings.ramp_s * 1e9
        self._valid_s = settings.command_age_s
        self.restart(np.zeros(len(limits.names)), 0)

    def restart(self, position: NDArray[np.float64], now_ns: int) -> None:
        """Stands at `position`; the ramp of a start begins now."""
        self.motion = Motion.at_rest(position)
        self.target: Target | None = None
        self._backup: tuple[Plan, int] | None = None  # the proven way to stand still, and how far into it, ns
        self._plan: tuple[Plan, int] | None = None
        self._planned_for: tuple[int, float] | None = None  # point of the target and speed
        self._ramp_from_ns = now_ns

    @property
    def resting(self) -> bool:
        """Whether the output stands still and follows nothing."""
        return self.target is None and self.motion.resting

    def drop(self) -> None:
        """Forgets the target; from the next period on the output brakes."""
        self.target = None
        self._plan = None

    def follow(self, points: NDArray[np.float64], times_s: NDArray[np.float64], received_ns: int, now_ns: int, scale: float) -> set[str]:
        """Takes a new target, cut to what the limits allow.

        Args:
            points: (K, J) positions.
            times_s: (K,) seconds after `received_ns`.
            received_ns, now_ns: monotonic times of receipt and of this period.
            scale: speed scale.

        Returns:
            What cut it: any of `position`, `workspace`, `orientation`, `velocity`, `speed_scale`.
        """
        cuts: set[str] = set()
        start = previous = np.array(self.motion.position)
        let_through = np.empty_like(points)
        before_s = (now_ns - received_ns) / 1e9
        for index, (point, time_s) in enumerate(zip(points, times_s.tolist(), strict=True)):
            clamped, outside = self._boundary.clamp(point, start)
            if outside:
                cuts.add("position")
            speed = self._speed(received_ns + round(time_s * 1e9), scale)
            if speed < _STANDSTILL:
                reached, late = previous, True
            else:
                reached, late = self._boundary.reach(clamped, previous, max(time_s - before_s, 1e-9), speed)
            if late:
                cuts.add("velocity" if scale == 1.0 else "speed_scale")
            previous, crossed = self._boundary.contain(reached, previous)
            if crossed:
                cuts.add(crossed)
            let_through[index] = previous
            before_s = time_s
        self.target = Target.through(let_through, start, times_s, from_ns=received_ns, valid_s=self._valid_s)
        self._plan = None
        return cuts

    def advance(self, now_ns: int, scale: float) -> set[str]:
        """Moves on by one control period from `now_ns`.

        Returns:
            What limited or stopped the motion: any of `velocity`, `acceleration`, `jerk`, `speed_scale`, `position`, `workspace`.
        """
        if self.target is None:
            self._brake()
            return set()
        speed = self._speed(now_ns, scale)
        if speed < _STANDSTILL:
            self._plan = None
            self._brake()
            return {"speed_scale"}
        try:
            limited = self._aim(self.target, now_ns, speed)
            assert self._plan is not None
            plan, elapsed_ns = self._plan
            motion = plan.at((elapsed_ns + self._period_ns) / 1e9)
            crossed, backup = self._prove(motion)
        except PlanError:
            limited, crossed, backup = set(), "no_plan", None
        if scale < 1.0 and "velocity" in limited:
            limited = {"speed_scale"}
        if crossed:
            self._plan = None
            self._brake()
            return limited | {crossed}
        self._plan = plan, elapsed_ns + self._period_ns
        self._backup = backup
        self.motion = motion
        return limited

    def _speed(self, at_ns: int, scale: float) -> float:
        ramp = (at_ns - self._ramp_from_ns) / self._ramp_ns
        return scale * min(1.0, max(_RAMP_START, ramp))

    def _aim(self, target: Target, now_ns: int, speed: float) -> set[str]:
        """Plans towards the next point of the target, where point or speed are not those already planned for."""
        index = target.segment(now_ns)
        if self._plan is not None and self._planned_for == (index, speed):
            return set()
        fastest = self._velocity * speed
        plan, late = self._planner.move(
            self.motion,
            target.points[index],
            self._reachable(np.array(target.points[index]), np.clip(target.velocities[index], -fastest, fastest)).tolist(),
            duration_s=max(target.times_ns[index] - now_ns, 0) / 1e9,
            speed=speed,
        )
        self._plan = plan, 0
        self._planned_for = index, speed
        return {late} if late else set()

    def _reachable(self, point: NDArray[np.float64], velocity: NDArray[np.float64]) -> NDArray[np.float64]:
        """`velocity` (J,) at `point`, cut to what can be reached on the way there: for more the arm would have to go back and run up."""
        sense = np.sign(velocity)
        now = np.maximum(sense * self.motion.velocity, 0.0)
        way = sense * (point - self.motion.position)
        fastest = np.sqrt(np.maximum(now**2 + 2 * self._acceleration * way, 0.0))
        return sense * np.minimum(np.abs(velocity), _RUN_UP * fastest)

    def _prove(self, motion: Motion) -> tuple[str | None, tuple[Plan, int] | None]:
        """What `motion`, or standing still after it, would cross, and the way to stand still."""
        if motion.resting and motion.position == self.motion.position:
            return None, None
        stop = self._planner.stop(motion)
        crossed = self._boundary.crossed(np.array(self.motion.position), np.array(motion.position), np.array(stop.end.position))
        return crossed, (stop, 0)

    def _brake(self) -> None:
        if self.motion.resting or self._backup is None:
            return
        stop, elapsed_ns = self._backup
        self.motion = stop.at((elapsed_ns + self._period_ns) / 1e9)
        self._backup = stop, elapsed_ns + self._period_ns
