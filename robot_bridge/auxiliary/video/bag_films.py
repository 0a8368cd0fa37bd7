"""Films of bags (MCAP, rosbag2): their Image and CompressedImage topics.

A bag names no episodes: a new one begins where its stamps go back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rl_core.data.episode import DatasetError
from rl_core.data.formats.bag_stream import RECOVERED, BagReader
from rl_core.data.formats.bag_values import header_stamp_ns
from robot_bridge.auxiliary.video.film import Film, Unread
from robot_bridge.auxiliary.video.pictures import described, pixels

_TYPES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")


@dataclass(kw_only=True)
class _Topic:
    """Pictures of a topic that were kept; how many could not be read, and what is wrong with the last; a kind that is not searched."""

    sent: list[int] = field(default_factory=list)
    stamps: list[int] = field(default_factory=list)
    frames: list[NDArray[np.uint8]] = field(default_factory=list)
    broken: int = 0
    problem: str = ""
    other: str = ""


def bag_films(bag: Path, period_ns: int, unread: Unread) -> Iterator[Film]:
    """The films of a bag; what lies before damage is taken.

    Args:
        bag: an MCAP file, or a folder of rosbag2.
        period_ns: time between two pictures that are kept; 0 keeps all.
        unread: is told what became no film.

    Raises:
        DatasetError: nothing of it can be read.
    """
    reader = BagReader(bag)
    topics: dict[str, _Topic] = {}
    messages = 0
    for message in reader.messages():
        messages += 1
        if message.type not in _TYPES:
            continue
        topic = topics.setdefault(message.topic, _Topic())
        # Most pictures are left out, so the time of sending decides before anything is decoded.
        if topic.sent and message.sent_ns - topic.sent[-1] < period_ns:
            continue
        try:
            decoded = reader.types.decode(message)
            frame = pixels(decoded, f"topic {message.topic}")
        except DatasetError as error:
            topic.broken, topic.problem = topic.broken + 1, str(error)
            continue
        if frame is None:
            topic.other = described(decoded)
            continue
        stamp_ns = header_stamp_ns(decoded)
        topic.sent.append(message.sent_ns)
        topic.stamps.append(message.sent_ns if stamp_ns is None else stamp_ns)
        topic.frames.append(frame)
    whole = not reader.damage or any(name == RECOVERED for name, _ in reader.metadata)  # its last record: all before it was read
    if not whole and not messages:
        raise DatasetError(f"{bag}: {reader.damage}")
    if not whole:
        unread.damage.append(reader.damage)
    for name, topic in topics.items():
        if topic.broken:
            unread.damage.append(f"{topic.broken} of its pictures cannot be read, the last: {topic.problem}")
        if topic.other:
            unread.unsearched.append(f"topic {name}: {topic.other} is not searched")
        yield from _films(bag, name, topic)


def _films(bag: Path, name: str, topic: _Topic) -> Iterator[Film]:
    if not topic.frames:
        return
    times = np.array(topic.stamps if any(topic.stamps) else topic.sent, np.int64)  # some drivers never set the stamp
    ends = [0, *(np.flatnonzero(np.diff(times) < 0) + 1).tolist(), len(times)]  # simulated time began anew: another episode
    for number, (first, last) in enumerate(pairwise(ends)):
        episode = str(number) if len(ends) > 2 else ""
        yield Film(source=bag, episode=episode, camera=name, stamps_ns=times[first:last], frames=topic.frames[first:last])
