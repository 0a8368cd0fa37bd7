"""What the command filter let through, in the numbers of the actions: from the targets that an arm says it follows.

A target is where the filter lets the newest command go, limits applied, or the output itself while it follows none. The one in force
at the end of a step is what was applied in it. It is turned into an action as an action is turned into a target: a delta counts from
what was measured at the step. What went to the driver (`arm/applied`) does not tell: it is on its way to the target for two periods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from rl_core.contract import Gripper, RobotContract

POSE_AXES = ("x", "y", "z", "rx", "ry", "rz")

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class TargetSource:
    """Where targets are found.

    Attributes:
        joints: topic of JointTrajectory messages, the target's joints.
        pose: topic of PoseStamped messages, its end-effector pose.
        gripper: the arm's, in the units of `joints`; None for an arm without one.
    """

    joints: str
    pose: str
    gripper: Gripper | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Targets:
    """Targets with their stamps, ascending, one where they changed.

    Attributes:
        stamps_ns: (N,) int64.
        values: (N, J) in the order of `joints_needed`, or (N, 7) position and quaternion x, y, z, w.
    """

    stamps_ns: NDArray[np.int64]
    values: Array


def joints_needed(contract: RobotContract, gripper: Gripper | None) -> tuple[str, ...]:
    """Names of the joints whose targets make an action: the arm's in joint space, then the gripper's."""
    action = contract.action
    arm = action.names[: action.size - (action.gripper is not None)] if action.space == "joint" else ()
    return (*arm, *([gripper.name] if action.gripper is not None and gripper is not None else []))


def can_be_told(contract: RobotContract, gripper: Gripper | None) -> bool:
    """Whether the contract measures what its actions start from."""
    action, measured = contract.action, {channel.name: channel for channel in contract.observation}
    moved = set(action.names[: action.size - (action.gripper is not None)])
    if action.gripper is not None and gripper is None:
        return False
    if action.space == "joint":
        return "joint_pos" in measured and moved <= set(measured["joint_pos"].names)
    return moved == set(POSE_AXES) and action.frame == "base" and {"eef_pos", "eef_quat"} <= measured.keys()


def applied_actions(
    contract: RobotContract,
    requested: Array,
    stamps_ns: NDArray[np.int64],
    measured: Mapping[str, Array],
    joints: Targets,
    poses: Targets | None,
    gripper: Gripper | None,
) -> NDArray[np.float32]:
    """(T, A) float32; the requested action where no target was heard of yet.

    Args:
        contract: one that `can_be_told`.
        requested: (T, A) policy values.
        stamps_ns: (T + 1,) int64 of the observations.
        measured: channel -> (T + 1, ...), as measured.
        joints: of `joints_needed`.
        poses: for an end-effector action.
        gripper: the arm's.
    """
    action, steps = contract.action, len(requested)
    values = np.array(requested, np.float64)
    columns = {name: index for index, name in enumerate(action.names)}
    if action.space == "joint":
        there, target = _in_force(joints, stamps_ns)
        names = [name for name in action.names if action.gripper is None or name != action.gripper.name]
        joint_names = contract.channel("joint_pos").names
        start = measured["joint_pos"][:steps][:, [joint_names.index(name) for name in names]]
        moves = target[:, : len(names)] - (0.0 if action.meaning == "absolute" else start)
    else:
        assert poses is not None
        there, target = _in_force(poses, stamps_ns)
        names = list(POSE_AXES)
        moves = _pose_moves(target, measured["eef_pos"][:steps], measured["eef_quat"][:steps], absolute=action.meaning == "absolute")
    if action.meaning == "velocity":
        moves = moves / action.period_s
    order = np.array([columns[name] for name in names])
    values[np.ix_(there, order)] = (moves / np.array(action.scale)[order])[there]
    if action.gripper is not None and gripper is not None:
        there, target = _in_force(joints, stamps_ns)
        values[there, -1] = (2 * (target[:, -1] - gripper.open) / (gripper.closed - gripper.open) - 1)[there]
    return values.astype(np.float32)


def _in_force(targets: Targets, stamps_ns: NDArray[np.int64]) -> tuple[NDArray[np.bool_], Array]:
    """Of each step whether there was a target, and the one in force at its end."""
    index = np.searchsorted(targets.stamps_ns, stamps_ns[1:], side="left") - 1
    return index >= 0, targets.values[np.maximum(index, 0)]


def _pose_moves(target: Array, position: Array, quaternion: Array, *, absolute: bool) -> Array:
    """(T, 6) position and rotation vector of targets (T, 7): R = exp(r) R_measured, as deltas are decoded."""
    turned = Rotation.from_quat(target[:, 3:])
    if absolute:
        return np.concatenate([target[:, :3], turned.as_rotvec()], axis=1)
    turn = (turned * Rotation.from_quat(quaternion).inv()).as_rotvec()
    return np.concatenate([target[:, :3] - position, turn], axis=1)
