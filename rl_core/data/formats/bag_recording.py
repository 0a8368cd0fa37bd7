"""A bag that was recorded from a graph, as a dataset."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.formats.bag_episodes import EpisodeStream
from rl_core.data.formats.bag_graph import ARM_CONTRACT
from rl_core.data.formats.bag_mapping import BagMapping
from rl_core.data.formats.bag_splitting import RawEpisode
from rl_core.data.formats.bag_stream import BagMessage, BagReader

logger = logging.getLogger(__name__)


def read_recorded(reader: BagReader, messages: Iterable[BagMessage], mapping: BagMapping | None) -> Dataset:
    """Its finished episodes.

    Args:
        reader: of the bag.
        messages: all of it.
        mapping: where the channels are; None for our own graph's topics.

    Raises:
        DatasetError: a topic, a name or a contract is missing; a message cannot be used.
    """
    graph = mapping is None or mapping.contract is None
    stream = EpisodeStream(mapping, namespace=_namespace(reader.path) if graph else "", types=reader.types)
    episodes = list(_episodes(reader, messages, stream))
    missing = sorted(stream.topics - set(reader.topics))
    if missing and not reader.damage:
        raise DatasetError(f"mapping: no topic {missing}; topics of the bag: {sorted(reader.topics)}")
    arms = _arms(reader)
    if graph and len(arms) > 1:
        raise DatasetError(f"more than one arm: {arms}; valid: a mapping that says which")
    contract = stream.contract
    if contract is None:
        said = f"no policy action in an episode, or no {ARM_CONTRACT}"
        raise DatasetError(f"{reader.damage or said}; topics {sorted(reader.topics)}; a bag of another robot needs a mapping")
    return Dataset(contract=contract, episodes=tuple(_with_gaps(episodes, reader)))


def _episodes(reader: BagReader, messages: Iterable[BagMessage], stream: EpisodeStream) -> Iterator[Episode]:
    for raw in _raw_episodes(reader, messages, stream):
        yield from stream.episodes(raw)


def _raw_episodes(reader: BagReader, messages: Iterable[BagMessage], stream: EpisodeStream) -> Iterator[RawEpisode]:
    for message in messages:
        yield from stream.add(message)
    if not reader.damage:  # else the rest may lack messages
        yield from stream.finish()


def _namespace(path: Path) -> str:
    """Namespace of the first arm in the bag; empty where there is none."""
    reader = BagReader(path)
    for _ in reader.messages():
        for topic in _arms(reader):
            return topic.removesuffix(ARM_CONTRACT).strip("/")
    return ""


def _arms(reader: BagReader) -> list[str]:
    return sorted(topic for topic in reader.topics if topic.endswith(f"/{ARM_CONTRACT}"))


def _with_gaps(episodes: list[Episode], reader: BagReader) -> Iterator[Episode]:
    """The messages that the recorder missed, per topic, from its records."""
    gaps: dict[Any, Any] = {}
    for name, values in reader.metadata:
        if name == "episode":
            try:
                gaps[json.loads(values["index"]), json.loads(values.get("stamp_ns", "null"))] = json.loads(values["gaps"])
            except (KeyError, ValueError, TypeError):
                logger.warning("%s: a record of an episode's gaps is damaged", reader.path)
    for episode in episodes:
        key = episode.meta.get("index"), episode.meta.get("stamp_ns")
        yield dataclasses.replace(episode, meta={**episode.meta, "gaps": gaps[key]}) if key in gaps else episode
