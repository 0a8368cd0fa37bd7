"""Cuts a stream of messages into episodes, by the records on one topic.

A record is JSON {index, stamp_ns, phase, ...}; `running` begins an episode, `over` ends it, and so does the next `running` of another
(index, stamp_ns). A message belongs to the episode in whose time it was sent, whatever the order in which topics arrive, so that
every recorder of one run cuts alike. The last observation is sent after `over`: an episode is given out `SETTLE_NS` later.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rl_core.data.formats.bag_stream import BagMessage

SETTLE_NS = 1_000_000_000


@dataclass(kw_only=True, eq=False)
class RawEpisode:
    """Messages of one episode, in no order.

    Attributes:
        record: the newest of its records; empty where there are none.
        messages: those sent from its beginning to the next one's, or shortly after its end.
        begin_ns: when its first record was sent.
        over_ns: when the one was sent that says it is over; what is done later is no part of it.
    """

    record: Mapping[str, Any]
    messages: list[BagMessage]
    begin_ns: int
    over_ns: int = 2**63


@dataclass(kw_only=True, eq=False)
class _Open:
    begin_ns: int
    record: dict[str, Any]
    ended: BagMessage | None = None


class EpisodeSplitter:
    """See the module.

    Args:
        topic: of the records; empty: all messages are one episode.
        decode: gives the text of a record's message.
    """

    def __init__(self, topic: str, decode: Any) -> None:
        self._topic = topic
        self._decode = decode
        self._open: dict[tuple[Any, Any], _Open] = {}
        self._messages: list[BagMessage] = []
        self._now_ns = 0

    def add(self, message: BagMessage) -> list[RawEpisode]:
        """Takes a message; gives the episodes that are complete by now."""
        if self._topic and message.topic == self._topic:
            self._record(message)
        else:
            self._messages.append(message)
        return self.advance(message.received_ns)

    def advance(self, now_ns: int) -> list[RawEpisode]:
        """Time has passed, by the clock of `received_ns`; gives the episodes that are complete by now."""
        self._now_ns = max(self._now_ns, now_ns)
        done = []
        while (found := self._first()) is not None and self._complete(found):
            done.append(self._take(found))
        if self._topic and not self._open and len(self._messages) > 1:
            # between episodes only what may belong to the next one is kept
            self._messages = [m for m in self._messages if m.received_ns > self._now_ns - SETTLE_NS]
        return done

    @property
    def pending(self) -> int:
        """Episodes that ended and were not given out yet."""
        return sum(found.ended is not None or self._next(found) is not None for found in self._open.values())

    def finish(self) -> list[RawEpisode]:
        """The stream was ended in order; gives all that is left, the episode under way with the phase `cut`."""
        if not self._topic:
            if not self._messages:
                return []
            return [RawEpisode(record={}, messages=self._messages, begin_ns=min(m.sent_ns for m in self._messages))]
        done = []
        while (found := self._first()) is not None:
            if found.ended is None and self._next(found) is None:
                found.record = {**found.record, "phase": "cut"}
            done.append(self._take(found))
        return done

    def _record(self, message: BagMessage) -> None:
        try:
            record = json.loads(self._decode(message))
            key, over = (record["index"], record.get("stamp_ns")), record["phase"] == "over"
        except (ValueError, TypeError, KeyError, AttributeError):
            return  # it marks no episode
        if key not in self._open:
            if over:
                return  # its beginning was not heard
            self._open[key] = _Open(begin_ns=message.sent_ns, record=record)
        found = self._open[key]
        found.begin_ns = min(found.begin_ns, message.sent_ns)
        found.record = record if found.ended is None else found.record
        found.ended = message if over else found.ended

    def _first(self) -> _Open | None:
        return min(self._open.values(), key=lambda o: o.begin_ns, default=None)

    def _next(self, found: _Open) -> _Open | None:
        return min((o for o in self._open.values() if o.begin_ns > found.begin_ns), key=lambda o: o.begin_ns, default=None)

    def _complete(self, found: _Open) -> bool:
        following = self._next(found)
        ends = [found.ended.received_ns] if found.ended else []
        ends += [following.begin_ns] if following else []
        return bool(ends) and self._now_ns >= min(ends) + SETTLE_NS

    def _take(self, found: _Open) -> RawEpisode:
        following = self._next(found)
        if following is not None:
            end_ns = following.begin_ns
        else:
            end_ns = found.ended.sent_ns + SETTLE_NS if found.ended else 2**63
        self._open = {key: o for key, o in self._open.items() if o is not found}
        messages = [m for m in self._messages if found.begin_ns <= m.sent_ns < end_ns]
        self._messages = [m for m in self._messages if m.sent_ns >= end_ns]
        over_ns = found.ended.sent_ns if found.ended else 2**63
        return RawEpisode(record=found.record, messages=messages, begin_ns=found.begin_ns, over_ns=over_ns)
