"""ROS messages as arrays and back. Joints are found by name, never by index; numbers cross as float64; quaternions are x, y, z, w."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from geometry_msgs.msg import PoseStamped
from numpy.typing import NDArray
from sensor_msgs.msg import Image, JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rl_core.errors import ArmstackError
from robot_bridge.nodes.stamps import to_duration, to_ns, to_time

Array = NDArray[np.float64]

_CHANNELS = {"rgb8": (3, (0, 1, 2)), "bgr8": (3, (2, 1, 0)), "rgba8": (4, (0, 1, 2)), "bgra8": (4, (2, 1, 0)), "mono8": (1, (0, 0, 0))}


class MessageError(ArmstackError):
    """A message that cannot be used; names the field, what was found and what would be valid."""


def began(episode: str) -> tuple[int, int]:
    """Index of an `episode` message's episode, and the source time it began at, nanoseconds; 0 where it does not say.

    Raises:
        MessageError: it is not JSON with an `index`.
    """
    try:
        told = json.loads(episode)
        return int(told["index"]), int(told.get("stamp_ns", 0))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MessageError(f"episode: {episode[:100]!r}, valid: JSON with an index ({error})") from error


def by_name(wanted: Sequence[str], found: Sequence[str], values: Sequence[float], *, what: str) -> Array:
    """(len(wanted),) float64 values in the order of `wanted`; further names may be there.

    Raises:
        MessageError: a name is missing or twice there, or the counts differ.
    """
    if len(found) != len(values):
        raise MessageError(f"{what}: {len(values)} values for {len(found)} names {list(found)}")
    if len(set(found)) != len(found):
        raise MessageError(f"{what}: a name is there twice in {list(found)}")
    index = {name: i for i, name in enumerate(found)}
    missing = [name for name in wanted if name not in index]
    if missing:
        raise MessageError(f"{what}: {missing} missing; found {list(found)}, needed {list(wanted)}")
    return np.array([values[index[name]] for name in wanted], dtype=np.float64)


def joint_state(names: Sequence[str], positions: Array, velocities: Array, stamp_ns: int) -> JointState:
    """JointState of positions (J,) rad or m and velocities (J,)."""
    message = JointState(name=list(names), position=positions.tolist(), velocity=velocities.tolist())
    message.header.stamp = to_time(stamp_ns)
    return message


def trajectory(names: Sequence[str], positions: Array, times_s: Array, *, stamp_ns: int, source: str) -> JointTrajectory:
    """JointTrajectory of positions (H, J) at `times_s` (H,) after the stamp; frame_id is the source."""
    message = JointTrajectory(joint_names=list(names))
    message.header.stamp = to_time(stamp_ns)
    message.header.frame_id = source
    message.points = [
        JointTrajectoryPoint(positions=row.tolist(), time_from_start=to_duration(float(time)))
        for row, time in zip(positions, times_s, strict=True)
    ]
    return message


def trajectory_arrays(message: JointTrajectory) -> tuple[tuple[str, ...], Array, Array]:
    """Names, positions (H, J) float64 and times_from_start (H,) seconds of a JointTrajectory, in the message's joint order.

    Nothing is judged: points whose number of positions is not that of the names give an array as wide as the first such point, NaN where
    they differ among themselves; no points give no rows.
    """
    names = tuple(message.joint_names)
    widths = [len(point.positions) for point in message.points]
    width = next((found for found in widths if found != len(names)), len(names))
    if set(widths) <= {width}:
        positions = np.array([point.positions for point in message.points], dtype=np.float64).reshape(len(widths), width)
    else:
        positions = np.full((len(widths), width), np.nan)
    return names, positions, np.array([to_ns(point.time_from_start) * 1e-9 for point in message.points])


def pose(position: Array, quaternion: Array, *, frame: str, stamp_ns: int) -> PoseStamped:
    """PoseStamped of a position (3,) m and a quaternion (4,) x, y, z, w in `frame`."""
    message = PoseStamped()
    message.header.stamp = to_time(stamp_ns)
    message.header.frame_id = frame
    p, q = message.pose.position, message.pose.orientation
    p.x, p.y, p.z = (float(v) for v in position)
    q.x, q.y, q.z, q.w = (float(v) for v in unit_quaternion(quaternion, what="pose to send"))
    return message


def pose_arrays(message: PoseStamped, *, what: str = "PoseStamped") -> tuple[Array, Array]:
    """Position (3,) and quaternion (4,) x, y, z, w of a PoseStamped.

    Raises:
        MessageError: a number is not finite or the quaternion's norm is not 1.
    """
    p, q = message.pose.position, message.pose.orientation
    position = np.array([p.x, p.y, p.z])
    if not np.isfinite(position).all():
        raise MessageError(f"{what}: position {position.tolist()}, valid: finite metres")
    return position, unit_quaternion(np.array([q.x, q.y, q.z, q.w]), what=what)


def unit_quaternion(quaternion: Array, *, what: str) -> Array:
    """The quaternion unchanged (no renormalising: numbers cross ROS bit for bit).

    Raises:
        MessageError: its norm differs from 1 by more than 1e-3, or it is not finite.
    """
    norm = float(np.linalg.norm(quaternion))
    if not abs(norm - 1.0) <= 1e-3:
        raise MessageError(f"{what}: quaternion (x, y, z, w) {np.asarray(quaternion).tolist()} has norm {norm:.4g}, valid: 1")
    return np.asarray(quaternion, dtype=np.float64)


def image_to_rgb(message: Image) -> NDArray[np.uint8]:
    """(H, W, 3) uint8 RGB, first row on top, whatever the encoding's channel order and row padding.

    Raises:
        MessageError: an encoding that is not known, or a buffer whose size does not fit.
    """
    if message.encoding not in _CHANNELS:
        raise MessageError(f"Image: encoding {message.encoding!r}, valid: {sorted(_CHANNELS)}")
    count, order = _CHANNELS[message.encoding]
    height, width, step = message.height, message.width, message.step or message.width * count
    if step < width * count or len(message.data) != height * step:
        size = f"{len(message.data)} bytes, step {step}"
        raise MessageError(f"Image: {size} for {height}x{width} {message.encoding}; needed {height} rows of step bytes")
    rows = np.frombuffer(message.data, dtype=np.uint8).reshape(height, step)[:, : width * count]
    return np.ascontiguousarray(rows.reshape(height, width, count)[..., order])


def rgb_image(pixels: NDArray[np.uint8], *, frame: str, stamp_ns: int) -> Image:
    """rgb8 Image of (H, W, 3) uint8 RGB pixels, first row on top."""
    height, width, _ = pixels.shape
    message = Image(height=height, width=width, encoding="rgb8", step=3 * width)
    message.header.stamp = to_time(stamp_ns)
    message.header.frame_id = frame
    message.data = np.ascontiguousarray(pixels).tobytes()
    return message


def diagnostic(name: str, values: Mapping[str, Any], *, level: bytes = DiagnosticStatus.OK, message: str = "") -> DiagnosticStatus:
    """DiagnosticStatus with every value as text."""
    pairs = [KeyValue(key=key, value=f"{value:.6g}" if isinstance(value, float) else str(value)) for key, value in values.items()]
    return DiagnosticStatus(name=name, level=level, message=message, values=pairs)
