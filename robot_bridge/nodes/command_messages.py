"""JointCommand as a JointTrajectory and back.

A chunk that is sent again starts with a point at time_from_start = -offset, which is never executed. In lockstep a trajectory without
points says: no command in this period.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robot_bridge.control.command import JointCommand
from robot_bridge.nodes.messages import joint_state, trajectory, trajectory_arrays
from robot_bridge.nodes.stamps import to_ns, to_time


def command_message(command: JointCommand) -> JointTrajectory:
    """The message that carries `command`; the sender is told by the publisher's gid."""
    positions, times = command.positions, command.time_from_start_s
    if command.offset_s > 0:
        positions, times = np.vstack([positions[:1], positions]), np.concatenate([[-command.offset_s], times])
    return trajectory(command.names, positions, times, stamp_ns=command.stamp_ns, source=command.source)


def no_command_message(source: str, stamp_ns: int) -> JointTrajectory:
    """Lockstep: the period passes without a command."""
    message = JointTrajectory()
    message.header.stamp = to_time(stamp_ns)
    message.header.frame_id = source
    return message


def action_message(names: Sequence[str], values: NDArray[np.float64], *, stamp_ns: int, source: str) -> JointState:
    """What is sent on `policy/action`: policy values (A,) under the contract's names of them, with the kind of sender as frame_id."""
    message = joint_state(names, values, np.empty(0), stamp_ns)
    message.header.frame_id = source
    return message


def command_from(message: JointTrajectory, sender: str) -> JointCommand:
    """The command in `message`, sent by the publisher with gid `sender`. The filter judges it: no points, or points that do not fit the
    names, are refused there as malformed.
    """
    names, positions, times = trajectory_arrays(message)
    offset_s = 0.0
    if len(times) > 1 and times[0] <= 0.0:
        offset_s, positions, times = -float(times[0]), positions[1:], times[1:]
    return JointCommand(
        stamp_ns=to_ns(message.header.stamp),
        source=message.header.frame_id,
        sender=sender,
        names=names,
        positions=positions,
        time_from_start_s=times,
        offset_s=offset_s,
    )
