"""Messages as arrays and back."""

from __future__ import annotations

import numpy as np
import pytest
from sensor_msgs.msg import Image, JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_bridge.control.admission import Situation, judge
from robot_bridge.control.limits import panda_limits
from robot_bridge.control.settings import FilterSettings
from robot_bridge.nodes.command_messages import command_from
from robot_bridge.nodes.messages import (
    MessageError,
    by_name,
    image_to_rgb,
    joint_state,
    pose,
    pose_arrays,
    rgb_image,
    trajectory,
    trajectory_arrays,
)
from robot_bridge.nodes.stamps import to_duration, to_ns, to_time

NAMES = ("shoulder_pan", "shoulder_lift", "elbow")


def test_joint_order_is_by_name_never_by_index() -> None:
    message = JointState(name=["elbow", "shoulder_lift", "shoulder_pan", "gripper"], position=[3.0, 2.0, 1.0, 0.04])
    assert by_name(NAMES, message.name, message.position, what="joint_states").tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("names", "values", "text"),
    [
        (["elbow", "shoulder_pan"], [1.0, 2.0], "shoulder_lift"),
        (["elbow", "elbow", "shoulder_lift", "shoulder_pan"], [1.0, 2.0, 3.0, 4.0], "twice"),
        (["elbow", "shoulder_lift", "shoulder_pan"], [1.0, 2.0], "2 values for 3 names"),
    ],
)
def test_a_missing_or_duplicate_joint_name_is_refused(names: list[str], values: list[float], text: str) -> None:
    with pytest.raises(MessageError, match=text):
        by_name(NAMES, names, values, what="joint_states")


def test_red_bgr8_arrives_as_red() -> None:
    message = Image(height=2, width=3, encoding="bgr8", step=9, data=bytes([0, 0, 255]) * 6)
    assert (image_to_rgb(message) == (255, 0, 0)).all()


@pytest.mark.parametrize(("encoding", "pixel"), [("rgb8", (255, 0, 0)), ("rgba8", (255, 0, 0, 9)), ("bgra8", (0, 0, 255, 9))])
def test_every_encoding_gives_the_same_red(encoding: str, pixel: tuple[int, ...]) -> None:
    row = bytes(pixel) * 3 + b"pad"  # rows may be padded
    message = Image(height=2, width=3, encoding=encoding, step=len(row), data=row * 2)
    assert (image_to_rgb(message) == (255, 0, 0)).all()


def test_an_image_that_does_not_fit_is_refused() -> None:
    with pytest.raises(MessageError, match="16UC1.*valid: .*bgr8"):
        image_to_rgb(Image(height=1, width=1, encoding="16UC1", step=2, data=b"\0\0"))
    with pytest.raises(MessageError, match="5 bytes"):
        image_to_rgb(Image(height=2, width=1, encoding="rgb8", step=3, data=b"12345"))


def test_pixels_survive_the_message() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    assert (image_to_rgb(rgb_image(pixels, frame="camera", stamp_ns=1)) == pixels).all()


def test_numbers_cross_a_trajectory_bit_for_bit() -> None:
    rng = np.random.default_rng(0)
    positions, times = rng.normal(size=(4, 3)), np.array([0.01, 0.02, 0.03, 1.04])
    message = trajectory(NAMES, positions, times, stamp_ns=1_234_567_890_123, source="policy")
    names, back, back_times = trajectory_arrays(message)
    assert names == NAMES and (back == positions).all() and np.abs(back_times - times).max() < 1e-9
    assert to_ns(message.header.stamp) == 1_234_567_890_123 and message.header.frame_id == "policy"


@pytest.mark.parametrize("widths", [(), (1,), (3,), (2, 1), (1, 2), (3, 2), (1, 3)])
def test_a_ragged_or_empty_trajectory_is_refused_by_the_filter_as_malformed(widths: tuple[int, ...]) -> None:
    limits = panda_limits()
    names = list(limits.names)
    points = [JointTrajectoryPoint(positions=[0.0] * (len(names) - 2 + width)) for width in widths]
    for i, point in enumerate(points):
        point.time_from_start.nanosec = 50_000_000 * (i + 1)
    command = command_from(JointTrajectory(joint_names=names, points=points), "sender")
    now = Situation(limits=limits, settings=FilterSettings(), source_ns=0, last_stamp_ns=None, output=np.zeros(len(names)))
    refusal = judge(command, now)
    assert refusal is not None and refusal.reason == "malformed"


def test_quaternion_order_is_xyzw_in_the_message() -> None:
    yaw_90 = np.array([0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])
    message = pose(np.array([1.0, 2.0, 3.0]), yaw_90, frame="base", stamp_ns=5)
    assert message.pose.orientation.z == message.pose.orientation.w == np.sqrt(0.5)
    position, quaternion = pose_arrays(message)
    assert (position == [1, 2, 3]).all() and (quaternion == yaw_90).all()


def test_a_quaternion_that_is_not_unit_is_refused() -> None:
    message = pose(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), frame="base", stamp_ns=0)
    message.pose.orientation.w = 0.5
    with pytest.raises(MessageError, match="norm 0.5"):
        pose_arrays(message)


def test_joint_state_and_stamps() -> None:
    message = joint_state(NAMES, np.arange(3.0), np.ones(3), 7_000_000_001)
    assert list(message.name) == list(NAMES) and list(message.velocity) == [1.0, 1.0, 1.0]
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (7, 1)
    assert to_ns(to_time(123_456_789_012)) == 123_456_789_012 and to_ns(to_duration(0.05)) == 50_000_000
