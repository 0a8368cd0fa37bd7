"""Numbers and pictures out of ROS messages. Joints are found by name, never by index; quaternions are x, y, z, w."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Channel
from rl_core.data.episode import DatasetError

_IMAGES = {"rgb8": (3, (0, 1, 2)), "bgr8": (3, (2, 1, 0)), "rgba8": (4, (0, 1, 2)), "bgra8": (4, (2, 1, 0)), "mono8": (1, (0,))}
_NAMES = ("name", "joint_names")
_DEFAULT_FIELDS = {
    "sensor_msgs/msg/JointState": "position",
    "trajectory_msgs/msg/JointTrajectory": "positions",
    "geometry_msgs/msg/WrenchStamped": "wrench.force",
    "geometry_msgs/msg/TwistStamped": "twist.linear",
    "geometry_msgs/msg/PointStamped": "point",
}


def header_stamp_ns(message: Any) -> int | None:
    """The header's stamp in nanoseconds; None for a message without header."""
    header = getattr(message, "header", None)
    return None if header is None else int(header.stamp.sec) * 10**9 + int(header.stamp.nanosec)


def default_field(message_type: str, kind: str) -> str:
    """The field that holds the numbers of a channel of `kind`, where a mapping names none."""
    if message_type in ("geometry_msgs/msg/PoseStamped", "geometry_msgs/msg/Pose"):
        part = "orientation" if kind == "quaternion" else "position"
        return f"pose.{part}" if message_type.endswith("Stamped") else part
    return _DEFAULT_FIELDS.get(message_type, "data")


def numbers(message: Any, field: str, names: Sequence[str], *, found_as: Mapping[str, str], where: str) -> NDArray[Any] | None:
    """(len(names),) numbers of `field` in the order of `names`.

    Vectors, points and quaternions are read by their components; fields beside a list of joint names by those names; of a
    JointTrajectory, the first point that is not in the past; a bare array or number has no names and must have the right size.

    Args:
        message: a decoded message.
        field: dotted path, e.g. `position`, `pose.orientation`.
        names: the contract's.
        found_as: name in the contract -> name in the message, where it differs.
        where: for errors.

    Returns:
        None for a message of other joints altogether, or a trajectory without points: it says nothing about these.

    Raises:
        DatasetError: no such field, a name is missing or twice there, or the size is wrong.
    """
    wanted = [found_as.get(name, name) for name in names]
    there = next((list(getattr(message, key)) for key in _NAMES if hasattr(message, key)), None)
    if hasattr(message, "points") and hasattr(message, "joint_names"):
        points = [point for point in message.points if point.time_from_start.sec >= 0] or list(message.points)
        if not points:
            return None
        message = points[0]
    value = _field(message, field, where)
    if there is not None and np.ndim(value) == 1:
        return _by_name(np.asarray(value), there, wanted, f"{where}: {field}")
    if hasattr(value, "x"):
        missing = [name for name in wanted if not hasattr(value, name)]
        if missing:
            raise DatasetError(f"{where}: {field} has no {missing}; found {[n for n in 'xyzw' if hasattr(value, n)]}")
        return np.array([getattr(value, name) for name in wanted], np.float64)
    try:
        array = np.atleast_1d(np.asarray(value))
    except ValueError as error:
        raise DatasetError(f"{where}: {field} is no array: {error}") from error
    if array.dtype.kind not in "fiub":
        raise DatasetError(f"{where}: {field} is {type(value).__name__}, valid: numbers")
    if array.shape != (len(names),):
        raise DatasetError(f"{where}: {field} has {array.shape} values, valid: {len(names)} for {list(names)}")
    return array


def _field(message: Any, field: str, where: str) -> Any:
    value = message
    for part in field.split("."):
        if not hasattr(value, part):
            found = sorted(name for name in getattr(value, "__dataclass_fields__", ()) if not name.startswith("_"))
            raise DatasetError(f"{where}: no field {field!r}: {type(value).__name__} has {found}")
        value = getattr(value, part)
    return value


def _by_name(values: NDArray[Any], there: list[str], wanted: list[str], where: str) -> NDArray[Any] | None:
    if not set(wanted) & set(there):
        return None
    if len(values) != len(there):
        raise DatasetError(f"{where}: {len(values)} values for {len(there)} names {there}")
    if len(set(there)) != len(there):
        raise DatasetError(f"{where}: a name is there twice in {there}")
    missing = [name for name in wanted if name not in there]
    if missing:
        raise DatasetError(f"{where}: {missing} missing; found {there}, needed {wanted}")
    return values[[there.index(name) for name in wanted]]


def picture(message: Any, channel: Channel, *, where: str) -> NDArray[np.uint8]:
    """The Image as the channel wants it: (H, W, 3) RGB or (H, W, 1), its first row at the channel's end, whatever the encoding.

    Raises:
        DatasetError: another type, encoding or size.
    """
    if not hasattr(message, "encoding") or not hasattr(message, "step"):
        raise DatasetError(f"{where}: {type(message).__name__}, valid for an image channel: sensor_msgs/msg/Image")
    if message.encoding not in _IMAGES:
        raise DatasetError(f"{where}: encoding {message.encoding!r}, valid: {sorted(_IMAGES)}")
    count, order = _IMAGES[message.encoding]
    height, width, step = message.height, message.width, message.step or message.width * count
    if step < width * count or len(message.data) != height * step:
        raise DatasetError(f"{where}: {len(message.data)} bytes, step {step}, for {height}x{width} {message.encoding}")
    rows = np.asarray(message.data, np.uint8).reshape(height, step)[:, : width * count].reshape(height, width, count)[..., order]
    if channel.encoding == "rgb8" and rows.shape[-1] == 1:
        rows = np.repeat(rows, 3, axis=-1)
    if rows.shape != channel.shape:
        raise DatasetError(f"{where}: {rows.shape} {message.encoding}, valid: {channel.shape} {channel.encoding} for {channel.name}")
    return np.ascontiguousarray(rows if channel.row_order == "top_down" else rows[::-1])
