"""Messages in, episodes out: one path for bags that are read and for nodes that record."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Mapping

from rl_core.contract import RobotContract
from rl_core.data.episode import DatasetError, Episode
from rl_core.data.formats.bag_assembly import EpisodeAssembler
from rl_core.data.formats.bag_graph import ACTION, ARM_CONTRACT, ARM_STATUS, EPISODES, Graph, refusals
from rl_core.data.formats.bag_mapping import BagMapping
from rl_core.data.formats.bag_splitting import EpisodeSplitter, RawEpisode
from rl_core.data.formats.bag_stream import BagMessage, BagTypes

logger = logging.getLogger(__name__)


class EpisodeStream:
    """Makes episodes of messages as they come.

    Args:
        mapping: where the channels are; None for our own graph, which says it.
        namespace: of the graph, without slashes; relative topics of a mapping are in it.
        types: decodes the messages.
    """

    def __init__(self, mapping: BagMapping | None, *, namespace: str = "", types: BagTypes | None = None) -> None:
        self._graph = Graph(namespace)
        self._types = types or BagTypes()
        self._mapping = mapping.resolved(self._graph.resolve) if mapping is not None else None
        self._splitter = EpisodeSplitter(self.records, lambda message: self._types.decode(message).data)
        self._assembler: EpisodeAssembler | None = None

    @property
    def contract(self) -> RobotContract | None:
        """What the episodes' numbers mean; None before it is known."""
        if self._assembler is not None:
            return self._assembler.contract
        return self._mapping.contract if self._mapping is not None else None

    @property
    def records(self) -> str:
        """Topic on which episodes begin and end; empty: all is one episode."""
        return self._graph.resolve(EPISODES) if self._mapping is None else self._mapping.episodes

    @property
    def topics(self) -> set[str]:
        """Topics that a mapping names; empty without one."""
        return set(self._mapping.topics) if self._mapping is not None else set()

    def wants(self, topic: str) -> bool:
        """Whether messages of this topic are needed."""
        if self._mapping is None:
            return self._graph.needs(topic)
        return topic in self._mapping.topics or (self._mapping.contract is None and self._graph.describes(topic))

    def awaits(self, subscribed: Collection[str], heard: Collection[str]) -> list[str]:
        """Topics without which an episode that begins now would lack something: the observation's, which are sent all the time, until a
        message of them came, the others until they are subscribed to. Rewards are none of them: a real arm has none.
        """
        mappings = [self._mapping] if self._mapping is not None else self._graph.mappings()
        if not mappings:
            return [self._graph.resolve(ARM_CONTRACT)]
        observed = {source.topic for mapping in mappings for source in mapping.observation.values()}
        others = {topic for mapping in mappings for topic in mapping.topics if mapping.rewards is None or topic != mapping.rewards.topic}
        return sorted((observed - set(heard)) | (others - set(subscribed)))

    def add(self, message: BagMessage) -> list[RawEpisode]:
        """Takes a message; gives the episodes that are complete by now.

        Raises:
            DatasetError: a contract that cannot be used.
        """
        if not self.wants(message.topic):
            return []
        if self._graph.describes(message.topic) and message.topic not in self.topics:
            self._graph.hear(message.topic, self._types.decode(message).data)
            return []
        return [raw for raw in self._splitter.add(message) if raw.messages]

    def advance(self, now_ns: int) -> list[RawEpisode]:
        """Time has passed, by the recorder's clock; gives the episodes that are complete by now."""
        return [raw for raw in self._splitter.advance(now_ns) if raw.messages]

    @property
    def pending(self) -> int:
        """Episodes that ended and were not given out yet."""
        return self._splitter.pending

    def finish(self) -> list[RawEpisode]:
        """The stream was ended in order; gives the episodes that are left, the one under way with the phase `cut`."""
        return [raw for raw in self._splitter.finish() if raw.messages]

    def episodes(self, raw: RawEpisode) -> list[Episode]:
        """The episode, in parts where several senders commanded; none where it was discarded, and, with a warning, where it has no step.

        Raises:
            DatasetError: a message of it cannot be used, or nothing says what its numbers mean. Other episodes are not touched.
        """
        if raw.record.get("discarded"):
            logger.info("a discarded episode is left out: %s", dict(raw.record))
            return []
        assembler = self._assembler_for(raw)
        made = assembler.episodes(raw) if assembler is not None else []
        if not made:
            logger.warning("an episode without a step is left out: %s", dict(raw.record))
        counts = self._filter_counts(raw) if made else {}
        return [dataclasses.replace(episode, meta={**episode.meta, **counts}) for episode in made]

    def _assembler_for(self, raw: RawEpisode) -> EpisodeAssembler | None:
        if self._assembler is None:
            contract = self.contract or self._contract_of(raw)
            if contract is None:
                return None
            mapping = self._mapping if self._mapping is not None else self._graph.mapping(contract)
            self._assembler = EpisodeAssembler(mapping, contract, self._types)
        return self._assembler

    def _contract_of(self, raw: RawEpisode) -> RobotContract | None:
        """The graph's contract, by the names of the actions."""
        topic = self._graph.resolve(ACTION) if self._mapping is None else self._mapping.action.topic
        for message in raw.messages:
            if message.topic == topic:
                decoded = self._types.decode(message)
                names = getattr(decoded, "name", None) or getattr(decoded, "joint_names", None)
                if names is None:
                    raise DatasetError(f"topic {topic}: {message.type} has no names; valid: a mapping with a contract")
                return self._graph.contract(list(names))
        return None

    def _filter_counts(self, raw: RawEpisode) -> Mapping[str, dict[str, int]]:
        topic = self._graph.resolve(ARM_STATUS)
        statuses = sorted((m for m in raw.messages if m.topic == topic), key=lambda m: m.sent_ns)
        counts = refusals([self._types.decode(message) for message in statuses])
        return {"filter": counts} if counts else {}
