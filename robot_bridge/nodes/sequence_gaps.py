"""Counts the messages of a topic that were sent and never came, from the publishers' own sequence numbers."""

from __future__ import annotations

import json
from typing import Any

Counts = dict[str, dict[str, int]]
"""{topic: {received, lost, dropped}}."""


class SequenceGaps:
    """Per topic: received, lost on the way (gaps in a publisher's numbers), and dropped here (a full queue)."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, bytes], int] = {}
        self.received: dict[str, int] = {}
        self.lost: dict[str, int] = {}
        self.dropped: dict[str, int] = {}

    def add(self, topic: str, publisher: bytes, sequence: int | None) -> None:
        """Counts a message that came; what a publisher sent before its first one seen here is no gap."""
        self.received[topic] = self.received.get(topic, 0) + 1
        if sequence is None:
            return
        last = self._last.get((topic, publisher))
        if last is not None and sequence > last + 1:
            self.lost[topic] = self.lost.get(topic, 0) + sequence - last - 1
        if last is None or sequence > last:
            self._last[topic, publisher] = sequence

    def drop(self, topic: str) -> None:
        """Counts a message that came and could not be kept."""
        self.dropped[topic] = self.dropped.get(topic, 0) + 1

    def counts(self) -> Counts:
        """The counts since the start."""
        counted = sorted(self.received.items())
        return {t: {"received": n, "lost": self.lost.get(t, 0), "dropped": self.dropped.get(t, 0)} for t, n in counted}


def difference(now: Counts, before: Counts) -> Counts:
    """Counts of the time between two `SequenceGaps.counts()`."""
    return {topic: {key: value - before.get(topic, {}).get(key, 0) for key, value in counts.items()} for topic, counts in now.items()}


class EpisodeGaps:
    """Counts per episode, from the records on `episode` and the counts at their arrival."""

    def __init__(self) -> None:
        self._episode: dict[str, Any] | None = None
        self._at_start: Counts = {}

    def follow(self, text: str, counts: Counts) -> tuple[dict[str, Any], Counts] | None:
        """Takes a record; gives the newest record of the episode that it ends, and that episode's counts."""
        try:
            episode = json.loads(text)
            index, over = episode["index"], episode["phase"] == "over"
        except (ValueError, TypeError, KeyError):
            return None  # it marks no episode
        ended = None
        if self._episode is not None and (over or index != self._episode["index"]):
            ended = (episode if index == self._episode["index"] else self._episode), difference(counts, self._at_start)
            self._episode = None
        if not over:
            if self._episode is None:
                self._at_start = counts
            self._episode = episode
        return ended

    def cut(self, counts: Counts) -> tuple[dict[str, Any], Counts] | None:
        """The episode under way, its phase `cut`, and its counts; None where there is none."""
        if self._episode is None:
            return None
        return {**self._episode, "phase": "cut"}, difference(counts, self._at_start)


def missing(counts: Counts) -> dict[str, int]:
    """Topic -> messages that were lost or dropped, where there are any."""
    return {topic: n["lost"] + n["dropped"] for topic, n in counts.items() if n["lost"] + n["dropped"]}
