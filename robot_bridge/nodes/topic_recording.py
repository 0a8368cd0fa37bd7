"""Takes serialised messages of topics as they appear and hands them to a thread of its own, which may be slow.

What does not fit into the bounded queue is dropped and counted, so that a slow disk never slows the graph and never goes unnoticed.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from rl_core.data.episode import DatasetError
from rl_core.data.formats.bag_stream import BagMessage
from robot_bridge.nodes.qos import subscribe
from robot_bridge.nodes.sequence_gaps import Counts, SequenceGaps

_DISCOVERY_S = 0.2
_QUEUE_DEPTH = 100


class TopicRecording:
    """See the module.

    Args:
        node: subscribes and looks for topics.
        wants: whether a topic is recorded; asked once for each that has a publisher.
        check_type: raises DatasetError for a message type that cannot be recorded.
        room: bytes of the queue.
        marks: topic whose messages come with the counts of gaps as they were at their arrival, however late the thread is.
        write: called by the thread with each message, its number in its publisher's count, and the counts (None but for `marks`).
        idle: called by the thread after the messages that were waiting, and at least every `idle_s`.
    """

    def __init__(
        self,
        node: Node,
        *,
        wants: Callable[[str], bool],
        check_type: Callable[[str], None],
        room: int,
        marks: str,
        write: Callable[[BagMessage, int, Counts | None], None],
        idle: Callable[[], None],
        idle_s: float,
        failed: Callable[[Exception], None],
    ) -> None:
        self._node = node
        self._wants, self._check_type = wants, check_type
        self._room = room
        self._marks = marks
        self._write, self._idle, self._idle_s, self._failed = write, idle, idle_s, failed
        self._gaps = SequenceGaps()
        self._queue: deque[tuple[BagMessage, int, Counts | None]] = deque()
        self._queued_bytes = 0
        self._filled = threading.Condition()
        self._closing = False
        self._known: set[str] = set()
        self._subscriptions: list[Any] = []
        self._thread = threading.Thread(target=self._run, name="recording", daemon=True)
        node.create_timer(_DISCOVERY_S, self._discover)

    def start(self) -> None:
        """Looks for topics from now on."""
        self._discover()
        self._thread.start()

    @property
    def subscribed(self) -> frozenset[str]:
        """Topics whose messages are taken."""
        return frozenset(self._known)

    def counts(self) -> Counts:
        """Messages received, lost and dropped since the start."""
        with self._filled:
            return self._gaps.counts()

    def close(self) -> None:
        """Hands on what is queued, then ends the thread."""
        with self._filled:
            self._closing = True
            self._filled.notify()
        self._thread.join()

    def _discover(self) -> None:
        for topic, types in self._node.get_topic_names_and_types():
            if topic in self._known or not self._wants(topic):
                continue
            publishers = self._node.get_publishers_info_by_topic(topic)
            if not publishers:
                continue
            self._known.add(topic)
            try:
                message_class = _message_class(types[0])
                self._check_type(types[0])
            except (DatasetError, ImportError, AttributeError) as error:
                self._node.get_logger().error(f"topic {topic} of type {types[0]} is not recorded: {error}")
                continue
            profile = _profile_for([info.qos_profile for info in publishers])
            handler = self._handler(topic, types[0])
            self._subscriptions.append(subscribe(self._node, message_class, topic, handler, profile, with_info=True, raw=True))

    def _handler(self, topic: str, message_type: str) -> Callable[[bytes, dict[str, Any]], None]:
        def received(data: bytes, info: dict[str, Any]) -> None:
            sequence = info["publication_sequence_number"]
            received_ns = info["received_timestamp"] or time.time_ns()
            sent_ns = info["source_timestamp"] or received_ns
            with self._filled:
                self._gaps.add(topic, bytes(info["publisher_gid"]["data"]), sequence)
                # What says where an episode ends is small, and without it the counts of the episode would be lost too.
                if topic != self._marks and self._queued_bytes + len(data) > self._room:
                    self._gaps.drop(topic)
                    return
                counts = self._gaps.counts() if topic == self._marks else None
                message = BagMessage(topic=topic, type=message_type, data=data, sent_ns=sent_ns, received_ns=received_ns)
                self._queue.append((message, sequence or 0, counts))
                self._queued_bytes += len(data)
                self._filled.notify()

        return received

    def _run(self) -> None:
        try:
            while True:
                with self._filled:
                    if not self._queue and not self._closing:
                        self._filled.wait(self._idle_s)
                    if not self._queue and self._closing:
                        return
                    items = list(self._queue)
                    self._queue.clear()
                    self._queued_bytes = 0
                for item in items:
                    self._write(*item)
                self._idle()
        except Exception as error:  # reported to the node, which ends with it
            self._failed(error)


def _message_class(name: str) -> type[Any]:
    package, kind, message = name.split("/")
    found: type[Any] = getattr(importlib.import_module(f"{package}.{kind}"), message)
    return found


def _profile_for(offered: list[QoSProfile]) -> QoSProfile:
    """The strictest profile that every publisher there is compatible with."""
    reliable = all(profile.reliability == ReliabilityPolicy.RELIABLE for profile in offered)
    latched = all(profile.durability == DurabilityPolicy.TRANSIENT_LOCAL for profile in offered)
    return QoSProfile(
        depth=_QUEUE_DEPTH,
        history=HistoryPolicy.KEEP_LAST,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )
