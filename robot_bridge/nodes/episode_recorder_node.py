"""Records a dataset: one HDF5 file an episode, as `armstack train` reads it, made of topics by the code that reads bags."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from std_msgs.msg import String

from rl_core.data.episode import DatasetError, Episode
from rl_core.data.formats.bag_episodes import EpisodeStream
from rl_core.data.formats.bag_mapping import read_mapping
from rl_core.data.formats.bag_parts import CORRECTION
from rl_core.data.formats.bag_splitting import RawEpisode
from rl_core.data.formats.bag_stream import BagMessage
from rl_core.data.recording import EpisodeWriter
from robot_bridge.nodes.messages import diagnostic
from robot_bridge.nodes.qos import STREAM, advertise
from robot_bridge.nodes.recorder_watch import RECORDER
from robot_bridge.nodes.sequence_gaps import Counts, EpisodeGaps, missing
from robot_bridge.nodes.spin import Failure, NodeError, run
from robot_bridge.nodes.stamps import to_time
from robot_bridge.nodes.topic_recording import TopicRecording

_IDLE_S = 0.2
_DIAGNOSTICS_S = 0.5
_QUEUE_BYTES = 256_000_000


class EpisodeRecorderNode(Node):
    """Parameters: `folder` of the dataset, appended to; `mapping`, YAML file for topics other than our own graph's."""

    def __init__(self) -> None:
        super().__init__("episode_recorder")
        self._folder = str(self.declare_parameter("folder", "dataset").value)
        mapping_file = str(self.declare_parameter("mapping", "").value or "")
        self.failure = Failure()
        self._writer: EpisodeWriter | None = None
        try:
            mapping = read_mapping(mapping_file) if mapping_file else None
            self._stream = EpisodeStream(mapping, namespace=self.get_namespace().strip("/"))
            if self._stream.contract is not None:
                self._writer = EpisodeWriter(self._folder, self._stream.contract)
        except DatasetError as error:
            raise NodeError(str(error)) from error
        self._gaps = EpisodeGaps()
        self._gaps_of: dict[tuple[Any, Any], Counts] = {}
        self._written = 0
        self._newest: tuple[Any, Any] | None = None
        self._known: tuple[tuple[Any, Any] | None, int] = None, 0  # newest record, and episodes that ended and are not written or lost yet
        self._lost: list[str] = []
        self._diagnostics = advertise(self, DiagnosticArray, "diagnostics", STREAM)
        self._recording = TopicRecording(
            self,
            wants=self._stream.wants,
            check_type=lambda message_type: None,
            room=_QUEUE_BYTES,
            marks=self._stream.records,
            write=self._take,
            idle=lambda: self._written_all(self._stream.advance(time.time_ns())),
            idle_s=_IDLE_S,
            failed=self.failure.report,
        )
        self.create_timer(_DIAGNOSTICS_S, self._publish_diagnostics)
        self._recording.start()
        self.get_logger().info(f"recording episodes into {self._folder}")

    # -- the recording's thread -----------------------------------------------------------------------------------------

    def _take(self, message: BagMessage, sequence: int, counts: Counts | None) -> None:
        if counts is not None:
            text = deserialize_message(message.data, String).data
            self._note_gaps(self._gaps.follow(text, counts))
            self._newest = _newest(text) or self._newest
        try:
            complete = self._stream.add(message)
        except DatasetError as error:
            raise NodeError(f"{error}; start again with a new `folder`") from error
        self._written_all(complete)

    def _written_all(self, raws: list[RawEpisode]) -> None:
        self._write_all(raws)
        self._known = self._newest, self._stream.pending  # at once, for the node's thread

    def _note_gaps(self, ended: tuple[dict[str, Any], Counts] | None) -> None:
        if ended is not None:
            episode, gaps = ended
            self._gaps_of[episode["index"], episode.get("stamp_ns")] = gaps

    def _write_all(self, raws: list[RawEpisode]) -> None:
        for raw in raws:
            key = raw.record.get("index"), raw.record.get("stamp_ns")
            gaps = self._gaps_of.pop(key, None) if raw.record else self._recording.counts()
            try:
                for episode in self._stream.episodes(raw):
                    self._write(dataclasses.replace(episode, meta={**episode.meta, "gaps": gaps or {}}))
            except (DatasetError, OSError) as error:
                self._lost.append(f"episode {key[0]}: {error}")
                self.get_logger().error(f"lost {self._lost[-1]}; the others are kept, the next is recorded")

    def _write(self, episode: Episode) -> None:
        assert self._stream.contract is not None
        if self._writer is None:
            try:
                self._writer = EpisodeWriter(self._folder, self._stream.contract)
            except DatasetError as error:
                raise NodeError(f"{error}; give a new `folder`") from error
        file = self._writer.write(episode)
        self._written += 1
        source = f", {episode.meta['source']}" if "source" in episode.meta else ""
        correction = ", a correction" if episode.meta.get(CORRECTION) else ""
        said = f"{len(episode)} steps, success {episode.success}{source}{correction}"
        self.get_logger().info(f"episode {self._written}: {said}: {file.name}")

    # -- the node's -----------------------------------------------------------------------------------------------------

    def _publish_diagnostics(self) -> None:
        counts = self._recording.counts()
        lacking = missing(counts)
        # What a teleoperator waits for before an episode begins, and before the recorder is ended (`recorder_watch.py`).
        newest, pending = self._known
        awaits = self._stream.awaits(self._recording.subscribed, counts)
        watched = {"awaits": json.dumps(awaits), "newest": json.dumps(newest), "pending": pending}
        losses = {"lost": len(self._lost), "losses": json.dumps(self._lost)}
        values = {"folder": self._folder, "episodes": self._written, **losses, **watched}
        level, text = DiagnosticStatus.OK, "recording"
        if lacking:
            level, text = DiagnosticStatus.WARN, f"messages missing: {lacking}"
        if self._lost:
            level, text = DiagnosticStatus.ERROR, f"lost {self._lost[-1]}"
        topics = {topic: json.dumps(n) for topic, n in counts.items()}
        message = DiagnosticArray(status=[diagnostic(RECORDER, {**values, **topics}, level=level, message=text)])
        message.header.stamp = to_time(time.time_ns())
        self._diagnostics.publish(message)

    def close(self) -> None:
        """Writes what is complete, and the episode under way as cut."""
        self._recording.close()
        self._note_gaps(self._gaps.cut(self._recording.counts()))
        try:
            self._write_all(self._stream.finish())
        except NodeError as error:
            self.get_logger().error(f"lost episode that ended last: {error}; the others are kept")


def _newest(record: str) -> tuple[Any, Any] | None:
    """(index, phase) of a record; None where it marks no episode."""
    try:
        episode = json.loads(record)
        return episode["index"], episode["phase"]
    except (ValueError, TypeError, KeyError):
        return None


def main() -> int:
    """Entry point of `episode_recorder_node`."""
    return run(EpisodeRecorderNode)


if __name__ == "__main__":
    raise SystemExit(main())
