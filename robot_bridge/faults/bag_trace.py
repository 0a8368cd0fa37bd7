"""Reads the trace of a run out of the bag that the recorder wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore

from rl_core.errors import ArmstackError
from robot_bridge.faults.trace import Mark, Trace


def read_trace(bag: Path, names: tuple[str, ...], *, applied: str, marks: str) -> Trace:
    """The outputs on topic `applied`, joints in the order of `names`, and the marks on topic `marks`, both in order of their stamps.

    Raises:
        ArmstackError: the bag holds no outputs.
    """
    types = get_typestore(Stores.ROS2_KILTED)
    outputs: list[tuple[int, list[float]]] = []
    found: list[Mark] = []
    with Reader(bag) as reader:
        for connection, _, data in reader.messages():
            if connection.topic not in (applied, marks):
                continue
            message: Any = types.deserialize_cdr(data, connection.msgtype)
            if connection.topic == marks:
                found.append(Mark.from_json(message.data))
                continue
            place = {name: index for index, name in enumerate(message.joint_names)}
            positions = message.points[0].positions
            stamp = message.header.stamp
            outputs.append((stamp.sec * 10**9 + stamp.nanosec, [float(positions[place[name]]) for name in names]))
    if not outputs:
        raise ArmstackError(f"{bag}: nothing on {applied}; did the recorder listen?")
    outputs.sort(key=lambda output: output[0])
    return Trace(
        names=names,
        stamps_ns=np.array([stamp_ns for stamp_ns, _ in outputs], dtype=np.int64),
        positions=np.array([positions for _, positions in outputs]),
        marks=tuple(sorted(found, key=lambda mark: mark.stamp_ns)),
    )
