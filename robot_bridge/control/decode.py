"""ActionDecoder: from a policy's numbers to joint positions, as the contract says they are meant, and back."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Action, ContractError, Gripper
from rl_core.errors import ArmstackError
from robot_bridge.arms.base import ArmState
from robot_bridge.control.command import JointCommand
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.control.names import order_by_name
from robot_bridge.control.rotation import from_rotation_vector, inverse, multiply, to_rotation_vector

POSE_AXES = ("x", "y", "z", "rx", "ry", "rz")


class ActionError(ArmstackError):
    """Values that are no action: wrong shape or not finite."""


class ActionDecoder:
    """Decodes actions of one contract for one arm; pure but for `clipped`.

    End-effector rotations are rotation vectors in the contract's frame: a delta turns the measured orientation about the
    frame's axes, R = exp(r) R_measured (robosuite's `OperationalSpaceController.set_goal`). Deltas of a chunk add up.

    Args:
        action: the action part of the contract.
        kinematics: the arm's; its joint names are the arm's, without the gripper.
        gripper: the arm's, where it is not the action's own: an action that opens by a share fits every gripper.

    Attributes:
        names: names of the decoded columns: arm joints, then the gripper where there is one.
        clipped: how often each dimension of an action lay outside [-1, 1] and was cut to it.

    Raises:
        ContractError: the action's names are not this arm's.
    """

    def __init__(self, action: Action, kinematics: Kinematics, *, gripper: Gripper | None = None) -> None:
        self.action = action
        self.clipped: Counter[str] = Counter()
        self._kinematics = kinematics
        self._scale = np.array(action.scale)
        self._gripper = (gripper or action.gripper) if action.gripper else None
        last = (action.gripper.name,) if action.gripper else ()
        joints = kinematics.joint_names
        expected = (*POSE_AXES, *last) if action.space == "end_effector" else (*joints, *last)
        if sorted(action.names) != sorted(expected):
            raise ContractError(f"action names {action.names} in space {action.space!r}; this arm understands {expected}")
        if action.space == "end_effector" and action.frame != "base":
            raise ContractError(f"action frame {action.frame!r}, valid: 'base'")
        self.names = (*joints, self._gripper.name) if self._gripper else joints
        self._order = order_by_name(action.names, expected)

    def decode(self, values: NDArray[np.floating], measured: ArmState) -> NDArray[np.float64]:
        """Joint positions (H, J), rad and m, columns in the order of `names`.

        Args:
            values: (H, A) policy values, columns in the order of the contract's action names.
            measured: where the arm is; deltas and velocities start there.

        Raises:
            ActionError: wrong shape or not finite.
            IKError: no joint positions reach the pose asked for.
        """
        scaled = self._scaled(values)
        joints = measured.positions[order_by_name(measured.names, self.names, allow_more=True)]
        arm = joints[: len(self._kinematics.joint_names)]
        decoded = np.empty((len(scaled), len(self.names)))
        columns = len(arm)
        moves = scaled[:, : scaled.shape[1] - (self.action.gripper is not None)]
        if self.action.meaning == "velocity":
            moves = moves * self.action.period_s
        if self.action.space == "joint":
            decoded[:, :columns] = moves if self.action.meaning == "absolute" else arm + np.cumsum(moves, axis=0)
        else:
            decoded[:, :columns] = self._solve(moves, arm)
        if self._gripper is not None:
            decoded[:, -1] = opening(scaled[:, -1], self._gripper)
        return decoded

    def command(
        self, values: NDArray[np.floating], measured: ArmState, *, stamp_ns: int, source: str, sender: str, offset_s: float = 0.0
    ) -> JointCommand:
        """The command for the actions due now and after.

        The first is to be reached two periods from now, the next one a period later each. Since every period brings a newer
        command, motion goes on evenly through the points instead of stopping at each. A delta or a velocity means the state
        measured when it is executed, so of those only the first is decoded; the rest waits for its own turn.

        Args:
            values: (H, A) actions from the present one on.
            measured: where the arm is.
            stamp_ns: time of the oldest observation used.
            source: see `JointCommand`.
            sender: see `JointCommand`.
            offset_s: how long ago the chunk's first action was due.

        Raises:
            ActionError: see `decode`.
            IKError: see `decode`.
        """
        due = values if self.action.meaning == "absolute" else values[:1]
        positions = self.decode(due, measured)
        return JointCommand(
            stamp_ns=stamp_ns,
            source=source,
            sender=sender,
            names=self.names,
            positions=positions,
            time_from_start_s=self.action.period_s * np.arange(2, len(positions) + 2),
            offset_s=offset_s,
        )

    def encode(self, target: NDArray[np.float64], measured: ArmState) -> NDArray[np.float64]:
        """The action (A,) that asks for joint positions `target` (J,) from `measured`: inverse of `decode` for one point.

        Values may lie outside [-1, 1] where the arm is already out of an action's reach.
        """
        joints = measured.positions[order_by_name(measured.names, self.names, allow_more=True)]
        columns = len(self._kinematics.joint_names)
        scaled = np.empty(len(self.action.names))
        moves = scaled[: len(scaled) - (self.action.gripper is not None)]
        if self.action.space == "joint":
            moves[:] = target[:columns] if self.action.meaning == "absolute" else target[:columns] - joints[:columns]
        else:
            position, turned = self._kinematics.fk(target[:columns])
            if self.action.meaning == "absolute":
                moves[:3], moves[3:] = position, to_rotation_vector(turned)
            else:
                start, orientation = self._kinematics.fk(joints[:columns])
                moves[:3], moves[3:] = position - start, to_rotation_vector(multiply(turned, inverse(orientation)))
        if self.action.meaning == "velocity":
            moves /= self.action.period_s
        if self._gripper is not None:
            grip = self._gripper
            scaled[-1] = 2 * (target[-1] - grip.open) / (grip.closed - grip.open) - 1
        values = np.empty_like(scaled)
        values[self._order] = scaled
        return values / self._scale

    def _scaled(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        values = np.asarray(values, dtype=np.float64)
        if values.ndim != 2 or len(values) == 0 or values.shape[1] != len(self.action.names):
            raise ActionError(f"action of shape {values.shape}, valid: (points, {len(self.action.names)}) for {self.action.names}")
        if not np.isfinite(values).all():
            raise ActionError(f"action {values.tolist()}, valid: finite numbers")
        outside = np.abs(values) > 1.0
        if outside.any():
            self.clipped.update({name: int(count) for name, count in zip(self.action.names, outside.sum(axis=0), strict=True) if count})
        return (np.clip(values, -1.0, 1.0) * self._scale)[:, self._order]

    def _solve(self, moves: NDArray[np.float64], start: NDArray[np.float64]) -> NDArray[np.float64]:
        joints = start
        position, orientation = self._kinematics.fk(start)
        solved = np.empty((len(moves), len(start)))
        for index, move in enumerate(moves):
            turn = from_rotation_vector(move[3:])
            if self.action.meaning == "absolute":
                position, orientation = move[:3], turn
            else:
                position, orientation = position + move[:3], multiply(turn, orientation)
            joints = self._kinematics.ik(position, orientation, joints)
            solved[index] = joints
        return solved


def opening(value: NDArray[np.float64], gripper: Gripper) -> NDArray[np.float64]:
    """Gripper position of a policy value: -1 is `gripper.open`, +1 is `gripper.closed`, whichever is the larger."""
    return gripper.open + (value + 1) / 2 * (gripper.closed - gripper.open)
