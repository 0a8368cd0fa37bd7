"""The output's own motion: jerk-limited plans towards a point, and braking, by Ruckig.

Berscheid and Kroeger, "Jerk-limited Real-time Trajectory Generation with Arbitrary Target States", RSS 2021. Each plan is
time-optimal under |v| <= v_max, |a| <= a_max, |j| <= j_max, or stretched to a given duration; the joints of the arm arrive
together, the gripper on its own. The same inputs give the same plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ruckig import ControlInterface, InputParameter, Result, Ruckig, RuckigError, Synchronization, Trajectory

from robot_bridge.control.limits import ArmLimits

_SOLVED = (Result.Working, Result.Finished)
_ON_TIME_S = 1e-9


class PlanError(RuntimeError):
    """No plan exists from this state; the filter brakes instead."""


@dataclass(frozen=True, slots=True)
class Motion:
    """Position, velocity and acceleration of all joints (J each) at one instant."""

    position: list[float]
    velocity: list[float]
    acceleration: list[float]

    @classmethod
    def at_rest(cls, position: NDArray[np.float64]) -> Motion:
        """Standing at `position`."""
        zeros = [0.0] * len(position)
        return cls(position.tolist(), zeros, zeros)

    @property
    def resting(self) -> bool:
        """Whether nothing moves."""
        return not any(self.velocity) and not any(self.acceleration)


class Plan:
    """A motion of all joints over time, made of one trajectory a group of joints (arm, gripper)."""

    __slots__ = ("_ends_at_rest", "_trajectories", "duration")

    def __init__(self, trajectories: list[Trajectory], ends_at_rest: bool) -> None:
        self._trajectories = trajectories
        self._ends_at_rest = ends_at_rest
        self.duration: float = max(trajectory.duration for trajectory in trajectories)

    def at(self, seconds: float) -> Motion:
        """The motion `seconds` after the start; after its end a group stands, or goes on evenly at its target velocity."""
        position: list[float] = []
        velocity: list[float] = []
        acceleration: list[float] = []
        for trajectory in self._trajectories:
            q, v, a = trajectory.at_time(seconds)
            position += q
            if self._ends_at_rest and seconds >= trajectory.duration:
                v = a = [0.0] * len(q)  # at_time leaves rounding there
            velocity += v
            acceleration += a
        return Motion(position, velocity, acceleration)

    @property
    def end(self) -> Motion:
        """The motion at the plan's end; exactly at rest if it ends at rest."""
        return self.at(self.duration)


class _Group:
    """Joints that move together: their part of every list is `part`."""

    def __init__(self, limits: ArmLimits, part: slice) -> None:
        joints = len(limits.names[part])
        self.part = part
        self.joints = joints
        self.velocity = limits.velocity[part]
        self.otg = Ruckig(joints)
        self.move = InputParameter(joints)
        self.move.max_acceleration = list(limits.acceleration[part])
        self.move.max_jerk = list(limits.jerk[part])
        self.move.synchronization = Synchronization.Phase
        self.stop = InputParameter(joints)
        self.stop.control_interface = ControlInterface.Velocity
        self.stop.synchronization = Synchronization.Phase  # in line, where velocity and acceleration are in line
        self.stop.max_velocity = list(limits.velocity[part])
        self.stop.max_acceleration = list(limits.stop_acceleration[part])
        self.stop.max_jerk = list(limits.stop_jerk[part])
        self.stop.target_velocity = [0.0] * joints

    def solve(self, inputs: InputParameter, start: Motion) -> Trajectory:
        inputs.current_position = start.position[self.part]
        inputs.current_velocity = start.velocity[self.part]
        inputs.current_acceleration = start.acceleration[self.part]
        return self.recompute(inputs)

    def recompute(self, inputs: InputParameter) -> Trajectory:
        trajectory = Trajectory(self.joints)
        try:
            result = self.otg.calculate(inputs, trajectory)
        except RuckigError as error:
            raise PlanError(str(error)) from error
        if result not in _SOLVED:
            raise PlanError(f"no trajectory: {result}")
        return trajectory


class Planner:
    """Makes plans within `limits`; the arm never waits for the gripper."""

    def __init__(self, limits: ArmLimits) -> None:
        arm = _Group(limits, slice(0, limits.arm_joints))
        self._groups = [arm] if limits.gripper is None else [arm, _Group(limits, slice(limits.arm_joints, None))]

    def move(
        self, start: Motion, position: list[float], velocity: list[float], *, duration_s: float, speed: float
    ) -> tuple[Plan, str | None]:
        """A plan from `start` to `position` with `velocity` there, no sooner than `duration_s`, at `speed` of the velocity limits.

        Returns:
            The plan, and which limit made the arm later than asked: `jerk`, `acceleration`, `velocity`, or None.

        Raises:
            PlanError: no plan from here.
        """
        trajectories = []
        for group in self._groups:
            move = group.move
            move.max_velocity = [limit * speed for limit in group.velocity]
            move.minimum_duration = duration_s
            move.target_position = position[group.part]
            move.target_velocity = velocity[group.part]
            trajectories.append(group.solve(move, start))
        arm = self._groups[0]
        late = trajectories[0].duration > duration_s + _ON_TIME_S
        return Plan(trajectories, not any(velocity)), self._blame(arm, duration_s) if late else None

    def stop(self, start: Motion) -> Plan:
        """Braking from `start` at the stop limits until all joints stand; those of the arm stand together.

        Raises:
            PlanError: no plan from here.
        """
        return Plan([group.solve(group.stop, start) for group in self._groups], True)

    @staticmethod
    def _blame(group: _Group, duration_s: float) -> str:
        """Lifts the jerk limit, then the acceleration limit too: the first that makes the plan punctual is the one that counted."""
        move = group.move
        jerk, acceleration = move.max_jerk, move.max_acceleration
        unlimited = [math.inf] * group.joints
        try:
            move.max_jerk = unlimited
            if group.recompute(move).duration <= duration_s + _ON_TIME_S:
                return "jerk"
            move.max_acceleration = unlimited
            return "acceleration" if group.recompute(move).duration <= duration_s + _ON_TIME_S else "velocity"
        except PlanError:
            return "acceleration"
        finally:
            move.max_jerk, move.max_acceleration = jerk, acceleration
