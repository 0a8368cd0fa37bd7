"""TeleopTarget: where a person wants the arm to be, and the command and the action that ask for it.

The target starts where the arm is and moves only while something is asked for; otherwise it is sent again as it is, so that nothing
drifts. What is asked for becomes the action of a policy's contract and is decoded as a policy's action is, so that the numbers of a
recorded demonstration mean what a policy's do.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from robot_bridge.arms.base import ArmState
from robot_bridge.control.command import JointCommand
from robot_bridge.control.decode import ActionDecoder, opening
from robot_bridge.control.kinematics import IKError, Kinematics
from robot_bridge.control.limits import ArmLimits
from robot_bridge.control.names import order_by_name
from robot_bridge.control.rotation import from_rotation_vector, inverse, multiply, to_rotation_vector
from robot_bridge.teleop.base import Reading, SourceError

SOURCE = "teleop"
FASTEST = np.array([0.25] * 3 + [1.2] * 3)
"""Speed of the end effector at a twist of 1 and a speed of 1, m/s and rad/s."""
CATCH_UP = 0.3
"""Speed of the joints on their way to a leader that stands elsewhere, rad/s."""
_LEAD_S = 0.25  # the target runs no further ahead of the arm than it moves in this time: where the arm lags, it must stop soon
_THERE = 1e-4  # rad, m
_OPEN, _CLOSED = -1.0, 1.0
Array = NDArray[np.float64]


class TeleopTarget:
    """See the module. Not thread-safe.

    Args:
        decoder: of the contract the actions are given in.
        kinematics: the arm's.
        limits: the arm's.

    Attributes:
        refused: why the newest reading was not followed; empty where it was.
    """

    def __init__(self, decoder: ActionDecoder, kinematics: Kinematics, limits: ArmLimits) -> None:
        self.refused = ""
        self._decoder = decoder
        self._kinematics = kinematics
        self._names = decoder.names
        self._arm = len(kinematics.joint_names)
        order = order_by_name(limits.names, self._names)
        self._low, self._high, self._max_lead = (
            np.array(values)[order] for values in (limits.position_min, limits.position_max, limits.max_lead)
        )
        self._gripper = limits.gripper if decoder.action.gripper is not None else None
        self._joints = np.zeros(len(self._names))
        self._sent = self._joints
        self._pose = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])
        self._caught = False

    def start(self, measured: ArmState, gripper: float | None = None) -> None:
        """The target is where the arm is.

        Args:
            measured: where that is.
            gripper: -1 .. 1, where the gripper was sent last, so that what it holds is not let go; None: where it is.
        """
        self._joints = self._ordered(measured).copy()
        if gripper is not None and self._gripper is not None:
            self._joints[-1] = opening(np.array(gripper), self._gripper)
        self._sent = self._joints
        self._pose = self._kinematics.fk(self._joints[: self._arm])
        self._caught = False
        self.refused = ""

    @property
    def other_gripper(self) -> float | None:
        """-1 .. 1: the other end than the one the gripper is sent to; None for an arm without one."""
        gripper = self._gripper
        if gripper is None:
            return None
        closed = abs(self._sent[-1] - gripper.closed) < abs(self._sent[-1] - gripper.open)
        return _OPEN if closed else _CLOSED

    def command(
        self, reading: Reading, measured: ArmState, *, speed: float, period_s: float, stamp_ns: int, sender: str
    ) -> tuple[Array, JointCommand]:
        """The action that is due, policy values (A,), and its command.

        Args:
            reading: what is asked for.
            measured: where the arm is.
            speed: share of `FASTEST`.
            period_s: since the last call.
            stamp_ns: time of the measured state.
            sender: see `JointCommand`.

        Raises:
            SourceError: a leader's joint is none of the arm's.
        """
        self.refused = ""
        try:
            if self._follow(reading, self._ordered(measured), speed, period_s):
                values = self._values(self._joints, measured)
                command = self._decoder.command(values[None], measured, stamp_ns=stamp_ns, source=SOURCE, sender=sender)
                self._sent = command.positions[-1]
                return values, command
        except IKError as error:
            self.refused = str(error)
        # To the bit where it was sent before: solved anew from where the arm is, an arm with more joints than needed would wander.
        self._joints, self._pose = self._sent, self._kinematics.fk(self._sent[: self._arm])
        held = JointCommand(
            stamp_ns=stamp_ns,
            source=SOURCE,
            sender=sender,
            names=self._names,
            positions=self._sent[None],
            time_from_start_s=np.array([2 * self._decoder.action.period_s]),
        )
        return self._values(self._sent, measured), held

    def _values(self, target: Array, measured: ArmState) -> Array:
        return np.clip(self._decoder.encode(target, measured), -1.0, 1.0)

    def _follow(self, reading: Reading, arm: Array, speed: float, period_s: float) -> bool:
        """Moves the target; whether anything was asked for."""
        gripper = reading.gripper is not None and self._set_gripper(reading.gripper)
        if reading.joints is not None:
            return self._lead(reading.joints, period_s) or gripper
        twist = np.zeros(6) if reading.twist is None else np.clip(reading.twist, -1.0, 1.0) * FASTEST * speed * period_s
        step = twist if reading.step is None else twist + reading.step
        if not step.any():
            return gripper
        self._move(step, arm, period_s)
        return True

    def _move(self, step: Array, arm: Array, period_s: float) -> None:
        position, orientation = self._kinematics.fk(arm[: self._arm])
        lead = _LEAD_S / period_s
        ahead = _at_most(self._pose[0] + step[:3] - position, lead * np.linalg.norm(step[:3]), self._pose[0] - position)
        wanted = multiply(from_rotation_vector(step[3:]), self._pose[1])
        turned = to_rotation_vector(multiply(self._pose[1], inverse(orientation)))
        turn = _at_most(to_rotation_vector(multiply(wanted, inverse(orientation))), lead * np.linalg.norm(step[3:]), turned)
        self._pose = position + ahead, multiply(from_rotation_vector(turn), orientation)
        solved = self._kinematics.ik(*self._pose, self._joints[: self._arm])
        self._joints = np.concatenate([solved, self._joints[self._arm :]])

    def _lead(self, joints: Mapping[str, float], period_s: float) -> bool:
        own = self._names[: self._arm]
        strange = sorted(set(joints) - set(own))
        if strange:
            raise SourceError(f"leader: {strange} are no joints of this arm; valid: {list(own)}; map them by name in `joints`")
        wanted = self._joints.copy()
        for name, value in joints.items():
            wanted[own.index(name)] = value
        wanted = np.clip(wanted, self._low, self._high)
        gaps = np.abs(wanted - self._joints)
        far = [name for name, gap, most in zip(own, gaps, self._max_lead, strict=False) if gap > most]
        if far:
            self._caught = False
            worst = own.index(max(far, key=lambda name: gaps[own.index(name)]))
            self.refused = (
                f"the leader asks {own[worst]} to go from {self._joints[worst]:.2f} to {wanted[worst]:.2f} rad at once, "
                f"valid: {self._max_lead[worst]:.2f} rad; bring the leader nearer to the arm's pose"
            )
            return False
        if not self._caught:
            most = CATCH_UP * period_s
            wanted[: self._arm] = self._joints[: self._arm] + np.clip(wanted - self._joints, -most, most)[: self._arm]
            self._caught = bool((gaps[: self._arm] <= most).all())
        moved = bool((np.abs(wanted - self._sent) > _THERE).any())
        self._joints = wanted
        self._pose = self._kinematics.fk(wanted[: self._arm])
        return moved

    def _set_gripper(self, value: float) -> bool:
        if self._gripper is None:
            return False
        position = float(opening(np.array(min(max(value, _OPEN), _CLOSED)), self._gripper))
        moved = position != self._joints[-1]
        self._joints = np.append(self._joints[:-1], position)
        return moved

    def _ordered(self, measured: ArmState) -> Array:
        return measured.positions[order_by_name(measured.names, self._names, allow_more=True)]


def _at_most(vector: Array, most: float | np.floating, allowed: Array) -> Array:
    """`vector`, no longer than `most` or, where that is longer, `allowed` already is."""
    length, bound = float(np.linalg.norm(vector)), max(float(most), float(np.linalg.norm(allowed)))
    return vector if length <= bound or length == 0.0 else vector * (bound / length)
