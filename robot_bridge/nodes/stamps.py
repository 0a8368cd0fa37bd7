"""ROS time as int64 nanoseconds and back."""

from __future__ import annotations

from builtin_interfaces.msg import Duration, Time

_NS = 1_000_000_000


def to_ns(stamp: Time | Duration) -> int:
    """Nanoseconds of a Time or Duration message."""
    return int(stamp.sec) * _NS + int(stamp.nanosec)


def to_time(stamp_ns: int) -> Time:
    """Time message of `stamp_ns` nanoseconds (0 or more)."""
    return Time(sec=stamp_ns // _NS, nanosec=stamp_ns % _NS)


def to_duration(seconds: float) -> Duration:
    """Duration message of `seconds`, rounded to a nanosecond."""
    total = round(seconds * _NS)
    return Duration(sec=total // _NS, nanosec=total % _NS)
