"""A person's keypoints as a message."""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import Point, Pose, PoseArray, Quaternion
from numpy.typing import NDArray

from robot_bridge.nodes.stamps import to_time


def keypoint_poses(keypoints: NDArray[Any], *, frame: str, stamp_ns: int) -> PoseArray:
    """PoseArray of keypoints (K, 3), metres in `frame`, in their order; their orientation means nothing."""
    message = PoseArray()
    message.header.stamp = to_time(stamp_ns)
    message.header.frame_id = frame
    for x, y, z in keypoints:
        place = Point(x=float(x), y=float(y), z=float(z))
        message.poses.append(Pose(position=place, orientation=Quaternion(x=0.0, y=0.0, z=0.0, w=1.0)))
    return message
