"""Messages and bags for tests: a small arm of another maker, without contract, through rosbags' own writer."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from rl_core.data.episode import Dataset, Episode
from rl_core.data.formats.mcap import McapFormat

STORE = get_typestore(Stores.ROS2_KILTED)
START_NS = 1_700_000_000_000_000_000
MS = 1_000_000

Sent = tuple[str, str, Any, int]
"""Topic, type, message, when it was sent."""


def make(message_type: str, **fields: Any) -> Any:
    kind: Any = STORE.types[message_type]
    return kind(**fields)


def header(stamp_ns: int, frame: str = "") -> Any:
    stamp = make("builtin_interfaces/msg/Time", sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
    return make("std_msgs/msg/Header", stamp=stamp, frame_id=frame)


def joint_state(topic: str, stamp_ns: int, values: dict[str, float], *, sent_ns: int | None = None) -> Sent:
    arrays = {"position": np.array(list(values.values()), np.float64), "velocity": np.zeros(0), "effort": np.zeros(0)}
    message = make("sensor_msgs/msg/JointState", header=header(stamp_ns), name=list(values), **arrays)
    return topic, "sensor_msgs/msg/JointState", message, stamp_ns if sent_ns is None else sent_ns


def trajectory(topic: str, stamp_ns: int, *points: dict[str, float], first_s: float = 0.05) -> Sent:
    def point(values: dict[str, float], time_s: float) -> Any:
        whole = int(time_s // 1)
        duration = make("builtin_interfaces/msg/Duration", sec=whole, nanosec=int(round((time_s - whole) * 1e9)))
        nothing = {"velocities": np.zeros(0), "accelerations": np.zeros(0), "effort": np.zeros(0)}
        row = np.array(list(values.values()), np.float64)
        return make("trajectory_msgs/msg/JointTrajectoryPoint", positions=row, time_from_start=duration, **nothing)

    made = [point(values, first_s + 0.05 * k) for k, values in enumerate(points)]
    names = list(points[0]) if points else []
    message = make("trajectory_msgs/msg/JointTrajectory", header=header(stamp_ns), joint_names=names, points=made)
    return topic, "trajectory_msgs/msg/JointTrajectory", message, stamp_ns


def pose(topic: str, stamp_ns: int, position: Iterable[float], quaternion: Iterable[float], frame: str = "base") -> Sent:
    point = make("geometry_msgs/msg/Point", **dict(zip("xyz", position, strict=True)))
    turned = make("geometry_msgs/msg/Quaternion", **dict(zip("xyzw", quaternion, strict=True)))
    body = make("geometry_msgs/msg/Pose", position=point, orientation=turned)
    return (
        topic,
        "geometry_msgs/msg/PoseStamped",
        make("geometry_msgs/msg/PoseStamped", header=header(stamp_ns, frame), pose=body),
        stamp_ns,
    )


def image(topic: str, stamp_ns: int, pixels: Any, encoding: str, *, padding: int = 0) -> Sent:
    height, width = pixels.shape[:2]
    rows = np.ascontiguousarray(pixels, np.uint8).reshape(height, -1)
    rows = np.pad(rows, ((0, 0), (0, padding)), constant_values=99)
    size = {"height": height, "width": width, "step": rows.shape[1], "is_bigendian": 0}
    message = make("sensor_msgs/msg/Image", header=header(stamp_ns), encoding=encoding, data=rows.reshape(-1), **size)
    return topic, "sensor_msgs/msg/Image", message, stamp_ns


def text(topic: str, stamp_ns: int, content: str) -> Sent:
    return topic, "std_msgs/msg/String", make("std_msgs/msg/String", data=content), stamp_ns


def write_foreign_bag(folder: Path, messages: Iterable[Sent], *, mcap: bool = True) -> Path:
    """A bag by rosbags' Writer; messages are recorded in the order given."""
    plugin = StoragePlugin.MCAP if mcap else StoragePlugin.SQLITE3
    with Writer(folder, version=9, storage_plugin=plugin) as writer:
        connections: dict[str, Any] = {}
        for topic, kind, message, sent_ns in messages:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=STORE)
            writer.write(connections[topic], sent_ns, STORE.serialize_cdr(message, kind))
    return folder


CONTRACT = """
contract:
  robot: bench_arm
  observation:
    - {name: joint_pos, names: [shoulder, elbow], unit: rad, max_age_s: 0.05}
    - {name: gripper_pos, names: [gripper], unit: m}
  action:
    names: [shoulder, elbow, gripper]
    meaning: absolute
    space: joint
    scale: [3.14, 2.0, 1.0]
    units: [rad, rad, m]
    period_s: 0.1
    gripper: {name: gripper, open: 0.08, closed: 0.0}
"""

MAPPING = (
    CONTRACT
    + """
observation:
  joint_pos: {topic: /joint_states, names: {shoulder: j1, elbow: j2}}
  gripper_pos: {topic: /joint_states, names: {gripper: finger}}
action: {topic: /arm/goal, names: {shoulder: j1, elbow: j2, gripper: finger}}
"""
)


def bench_arm(steps: int = 5, *, period_ns: int = 100 * MS) -> list[Sent]:
    """A run of the arm of `MAPPING`: states at twice the rate of goals, names in an order of their own."""
    messages = []
    for k in range(2 * steps + 1):
        stamp = START_NS + k * period_ns // 2
        messages.append(joint_state("/joint_states", stamp, {"finger": 0.01 * (k % 8), "j2": -0.1 * k, "j1": 0.1 * k}))
        if k % 2 == 0 and k < 2 * steps:
            messages.append(trajectory("/arm/goal", stamp, {"j2": 1.0, "finger": 0.08 if k else 0.0, "j1": 3.14 * k / (2 * steps)}))
    return messages


def read_with_mapping(bag: Path, mapping: str = MAPPING) -> Dataset:
    """What `mapping`, put beside it, makes of a bag."""
    (bag / "mapping.yaml").write_text(mapping)
    return McapFormat().read(bag)


def only(dataset: Dataset) -> Episode:
    """The one episode."""
    (episode,) = dataset.episodes
    return episode
