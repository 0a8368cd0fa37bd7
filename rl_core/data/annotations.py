"""What an episode's meta says beside its numbers: the task in words, and which primitive each step belongs to.

The words are `meta["lang"]`; in HDF5 they are also robomimic's attribute `ep_meta` = {"lang": ...} of the demo. Primitives are
`meta["primitives"]`, runs of equal tags [[tag, begin, end], ...] with exclusive ends, and are there for scoring retrieval only: meta is
no channel, so they never reach an observation, a feature or a policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rl_core.data.episode import DatasetError, Episode

LANG = "lang"
PRIMITIVES = "primitives"
RETRIEVED = "retrieved"
"""Says from where a retrieved piece was cut; also the name of these in a file's mask."""


def instruction(episode: Episode) -> str:
    """The task of the episode in words.

    Raises:
        DatasetError: the episode has none.
    """
    words = episode.meta.get(LANG)
    if not isinstance(words, str) or not words:
        raise DatasetError(f"episode {episode.uuid}: meta.{LANG} is {words!r}, valid: the task in words; meta has {sorted(episode.meta)}")
    return words


def primitive_runs(tags: Sequence[str]) -> list[list[Any]]:
    """One tag a step -> runs [[tag, begin, end], ...], ends exclusive: the form that meta holds."""
    runs, begin = [], 0
    for tag, group in groupby(tags):
        end = begin + len(list(group))
        runs.append([tag, begin, end])
        begin = end
    return runs


def primitive_tags(episode: Episode) -> list[str]:
    """The primitive of every step of the episode, (T,).

    Raises:
        DatasetError: the episode has no primitives, or they don't cover its steps one after another.
    """
    runs = episode.meta.get(PRIMITIVES)
    where = f"episode {episode.uuid}: meta.{PRIMITIVES}"
    if runs is None:
        raise DatasetError(f"{where} is missing; valid: [[tag, begin, end], ...] over all {len(episode)} steps")
    tags: list[str] = []
    for run in runs if isinstance(runs, list | tuple) else [runs]:
        match run:
            case [str(tag), int(begin), int(end)] if begin == len(tags) and begin < end <= len(episode):
                tags += [tag] * (end - begin)
            case _:
                raise DatasetError(f"{where}: run {run!r}, valid: [a text, begin {len(tags)}, an end up to {len(episode)}]")
    if len(tags) != len(episode):
        raise DatasetError(f"{where} covers {len(tags)} steps, valid: all {len(episode)}")
    return tags


def ep_meta(meta: Mapping[str, Any]) -> dict[str, str]:
    """What robomimic's attribute `ep_meta` says of the episode; empty where it has no instruction."""
    return {LANG: meta[LANG]} if isinstance(meta.get(LANG), str) else {}
