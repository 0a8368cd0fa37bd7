"""Records topics into an MCAP bag with true stamps and says per topic and episode how many messages are missing."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from std_msgs.msg import String

from rl_core.data.formats.bag import BagError, BagWriter, is_closed, next_folder, recover
from rl_core.data.formats.bag_stream import BagMessage
from rl_core.errors import ArmstackError
from robot_bridge.nodes.messages import diagnostic
from robot_bridge.nodes.qos import STREAM, advertise
from robot_bridge.nodes.sequence_gaps import Counts, EpisodeGaps, missing
from robot_bridge.nodes.spin import Failure, NodeError, run
from robot_bridge.nodes.stamps import to_time
from robot_bridge.nodes.topic_recording import TopicRecording
from robot_bridge.output_places import check_folder

_FLUSH_S = 1.0
_DIAGNOSTICS_S = 0.5
_NOT_RECORDED = ("/rosout", "/parameter_events")


class RecorderNode(Node):
    """Parameters: `folder` of the bag, `topics` to record (empty: all), `exclude`, `queue_mb` held while the disk is slow."""

    def __init__(self) -> None:
        super().__init__("recorder")
        folder = str(self.declare_parameter("folder", "bag").value)
        wanted, excluded = self._topics("topics"), self._topics("exclude")
        room = int(float(self.declare_parameter("queue_mb", 256.0).value or 0.0) * 1e6)
        self.failure = Failure()
        try:
            check_folder(Path(folder), "parameter folder")
        except ArmstackError as error:
            raise NodeError(str(error)) from error
        if Path(folder).is_dir() and not is_closed(folder):
            try:
                self.get_logger().warning(f"{folder}: an earlier recorder did not close this bag; {recover(folder)} messages saved")
            except BagError as error:
                self.get_logger().warning(str(error))
        self._bag = BagWriter(next_folder(folder))
        self._gaps = EpisodeGaps()
        self._flushed = time.monotonic()
        self._diagnostics = advertise(self, DiagnosticArray, "diagnostics", STREAM)
        self._recording = TopicRecording(
            self,
            wants=lambda topic: topic not in excluded and (topic in wanted if wanted else topic not in _NOT_RECORDED),
            check_type=self._bag.check_type,
            room=room,
            marks=self.resolve_topic_name("episode"),
            write=self._write,
            idle=self._flush,
            idle_s=_FLUSH_S,
            failed=self._failed,
        )
        self.create_timer(_DIAGNOSTICS_S, self._publish_diagnostics)
        self._recording.start()
        self.get_logger().info(f"recording into {self._bag.folder}")

    def _topics(self, parameter: str) -> set[str]:
        names: list[str] = list(self.declare_parameter(parameter, [""]).value or ())
        return {self.resolve_topic_name(name) for name in names if name}

    # -- the recording's thread -----------------------------------------------------------------------------------------

    def _write(self, message: BagMessage, sequence: int, counts: Counts | None) -> None:
        times = {"received_ns": message.received_ns, "sent_ns": message.sent_ns}
        self._bag.write(message.topic, message.type, message.data, **times, sequence=sequence)
        if counts is not None:
            self._write_episode(self._gaps.follow(deserialize_message(message.data, String).data, counts))

    def _write_episode(self, ended: tuple[dict[str, Any], Counts] | None) -> None:
        if ended is None:
            return
        episode, gaps = ended
        values = {key: json.dumps(value) for key, value in episode.items()}
        self._bag.write_metadata("episode", {**values, "gaps": json.dumps(gaps)})
        if lacking := missing(gaps):
            self.get_logger().warning(f"episode {episode['index']}: messages missing in the bag: {lacking}")

    def _flush(self) -> None:
        if time.monotonic() - self._flushed > _FLUSH_S:
            self._bag.flush()
            self._flushed = time.monotonic()

    def _failed(self, error: Exception) -> None:
        if isinstance(error, OSError):
            what_to_do = "free disk space or set `folder`, then start again"
            error = NodeError(f"{self._bag.file}: cannot be written: {error}; {what_to_do}")
        self.failure.report(error)

    # -- the node's -----------------------------------------------------------------------------------------------------

    def _publish_diagnostics(self) -> None:
        counts = self._recording.counts()
        lacking = missing(counts)
        status = diagnostic(
            "recorder",
            {"bag": self._bag.folder, **{topic: json.dumps(n) for topic, n in counts.items()}},
            level=DiagnosticStatus.WARN if lacking else DiagnosticStatus.OK,
            message=f"messages missing: {lacking}" if lacking else "recording",
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = to_time(time.time_ns())
        self._diagnostics.publish(message)

    def close(self) -> None:
        """Writes what is queued, then index and metadata."""
        self._recording.close()
        counts = self._recording.counts()
        gaps = json.dumps(counts)
        try:
            self._write_episode(self._gaps.cut(counts))
            self._bag.write_metadata("bag", {"gaps": gaps})
            self._bag.close({"gaps": gaps})
        except OSError as error:
            self.get_logger().error(f"{self._bag.folder} is not closed: {error}; the next recorder on this folder makes it whole")


def main() -> int:
    """Entry point of `recorder_node`."""
    return run(RecorderNode)


if __name__ == "__main__":
    raise SystemExit(main())
