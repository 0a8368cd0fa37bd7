"""Datasets made from datasets: merged, split, trimmed, filtered. Episodes keep their uuids and say where they are from.

Each operation adds an entry to an episode's `meta["history"]`, which formats keep as they keep any other fact:

    operation, arguments    what was done; `part` and `cut` say what that was for this episode
    source, fingerprint     name of the file or folder it was done to, and the fingerprint of its dataset
    version                 of Armstack

Nothing here changes what it was given.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rl_core.contract import ContractMismatch, RobotContract
from rl_core.data.checkup import still_steps
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats.bag_parts import CORRECTION

HISTORY = "history"


@dataclass(frozen=True, kw_only=True)
class Merged:
    """`dataset`, and the uuids of the episodes that came more than once and were `kept_once`."""

    dataset: Dataset
    kept_once: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Trimmed:
    """`dataset`, uuid -> steps `cut` at the start and at the end, and the uuids of `motionless` episodes, which stay as they were."""

    dataset: Dataset
    cut: Mapping[str, tuple[int, int]]
    motionless: tuple[str, ...]


def merge(datasets: Sequence[Dataset]) -> Merged:
    """All episodes, in order.

    An episode of a uuid that was there before is left out if it is the same but for its history.

    Raises:
        ContractMismatch: the contracts aren't equal; lists each difference with both sides.
        DatasetError: no datasets, or different episodes have one uuid.
    """
    if not datasets:
        raise DatasetError("no dataset to merge, valid: 1 or more")
    first = datasets[0]
    kept: dict[str, tuple[Dataset, Episode]] = {}
    once: list[str] = []
    for dataset in datasets:
        differences = _differences(_tree(dataset.contract), _tree(first.contract))
        if differences:
            raise ContractMismatch(_where(dataset), _where(first), differences)
        entry = history_entry("merge", {"sources": [_name(each) for each in datasets]}, dataset)
        for episode in dataset.episodes:
            if episode.uuid not in kept:
                kept[episode.uuid] = dataset, noted(episode, entry)
                continue
            source, earlier = kept[episode.uuid]
            if _content(earlier, first) != _content(episode, first):
                places = f"{_where(source)} and {_where(dataset)}"
                raise DatasetError(f"{places}: different episodes have the uuid {episode.uuid}; valid: one uuid, one episode")
            once.append(episode.uuid)
    return Merged(dataset=_with(first, [episode for _, episode in kept.values()]), kept_once=tuple(once))


def split(dataset: Dataset, share: float, seed: int) -> tuple[Dataset, Dataset]:
    """Two datasets, the first with `share` of the episodes; of successes, failures and those unknown each has its share.

    Raises:
        DatasetError: `share` isn't in (0, 1), or leaves one of them empty.
    """
    if not 0 < share < 1:
        raise DatasetError(f"share {share}, valid: more than 0 and less than 1")
    count = round(share * len(dataset))
    if not 0 < count < len(dataset):
        raise DatasetError(f"{_where(dataset)}: {share} of {len(dataset)} episodes is {count}; valid: 1 or more for each part")
    rng = np.random.default_rng(seed)
    groups: dict[bool | None, list[int]] = {}
    for index, episode in enumerate(dataset.episodes):
        groups.setdefault(None if episode.success is None else bool(episode.success), []).append(index)
    # each group shuffled, and an episode ranked by how far into its group it lies: the lowest ranks are a share of every group
    ranks = np.zeros(len(dataset))
    for outcome in sorted(groups, key=str):
        group = groups[outcome]
        ranks[rng.permutation(group)] = (np.arange(len(group)) + rng.random()) / len(group)
    chosen = set(np.argsort(ranks, kind="stable")[:count].tolist())
    entry = history_entry("split", {"share": share, "seed": seed}, dataset)
    parts: dict[str, list[Episode]] = {"A": [], "B": []}
    for index, episode in enumerate(dataset.episodes):
        part = "A" if index in chosen else "B"
        parts[part].append(noted(episode, {**entry, "part": part}))
    return _with(dataset, parts["A"]), _with(dataset, parts["B"])


def trim(dataset: Dataset, idle: int) -> Trimmed:
    """Cuts the steps at the start and the end of each episode in which the arm stands still, but for `idle` of them.

    The end of a terminal episode stays: its last step is what ended the task. Where the end is cut, the episode is truncated.

    Raises:
        DatasetError: `idle` is negative, or an episode has neither joint_pos nor eef_pos to tell.
    """
    if idle < 0:
        raise DatasetError(f"idle {idle}, valid: 0 or more")
    entry = history_entry("trim", {"idle": idle}, dataset)
    episodes, cut, motionless = [], {}, []
    for episode in dataset.episodes:
        still = still_steps(episode)
        if still is None:
            found = f"needed joint_pos or eef_pos, found {sorted(episode.observations)}"
            raise DatasetError(f"{_where(dataset)}: episode {episode.uuid}: idle steps cannot be told; {found}")
        moving = np.flatnonzero(~still)
        if not len(moving):
            motionless.append(episode.uuid)
            episodes.append(noted(episode, {**entry, "cut": [0, 0]}))
            continue
        begin = max(int(moving[0]) - idle, 0)
        end = len(episode) if episode.terminal else min(int(moving[-1]) + 1 + idle, len(episode))
        cut[episode.uuid] = (begin, len(episode) - end)
        episodes.append(noted(_steps(episode, begin, end), {**entry, "cut": list(cut[episode.uuid])}))
    return Trimmed(dataset=_with(dataset, episodes), cut=cut, motionless=tuple(motionless))


def filter_episodes(
    dataset: Dataset,
    *,
    success: bool = False,
    min_return: float | None = None,
    min_length: int | None = None,
    uuids: Collection[str] = (),
    corrections: bool = False,
) -> Dataset:
    """The episodes that fulfil every criterion given.

    Args:
        dataset: where to choose from.
        success: those known to have succeeded.
        min_return: those whose undiscounted return is this or more.
        min_length: those with this many steps or more.
        uuids: those named.
        corrections: those in which a person took a policy's place (`bag_parts`).

    Raises:
        DatasetError: no criterion, a uuid that isn't there, or no episode left.
    """
    criteria = {
        "success": success or None,
        "min_return": min_return,
        "min_length": min_length,
        "uuids": sorted(uuids) or None,
        "corrections": corrections or None,
    }
    arguments = {name: value for name, value in criteria.items() if value is not None}
    if not arguments:
        raise DatasetError(f"no criterion, valid: {', '.join(criteria)}")
    missing = sorted(set(uuids) - {episode.uuid for episode in dataset.episodes})
    if missing:
        first = [episode.uuid for episode in dataset.episodes[:3]]
        raise DatasetError(f"{_where(dataset)}: no episodes {missing}; of {len(dataset)} the first are {first}")
    entry = history_entry("filter", arguments, dataset)
    kept = [
        noted(episode, entry)
        for episode in dataset.episodes
        if (episode.success or not success)
        and (min_return is None or episode.episode_return >= min_return)
        and (min_length is None or len(episode) >= min_length)
        and (not uuids or episode.uuid in uuids)
        and (episode.meta.get(CORRECTION) or not corrections)
    ]
    if not kept:
        raise DatasetError(f"{_where(dataset)}: no episode of {len(dataset)} fulfils {arguments}")
    return _with(dataset, kept)


def _steps(episode: Episode, begin: int, end: int) -> Episode:
    if (begin, end) == (0, len(episode)):
        return episode
    rows, steps = slice(begin, end + 1), slice(begin, end)
    return dataclasses.replace(
        episode,
        observations={name: values[rows] for name, values in episode.observations.items()},
        observation_age_ns={name: values[rows] for name, values in episode.observation_age_ns.items()},
        actions=episode.actions[steps],
        rewards=episode.rewards[steps],
        action_applied=None if episode.action_applied is None else episode.action_applied[steps],
        stamps_ns=episode.stamps_ns[rows],
        truncated=episode.truncated or end < len(episode),
    )


def _with(dataset: Dataset, episodes: Sequence[Episode]) -> Dataset:
    return dataclasses.replace(dataset, episodes=tuple(episodes))


def _where(dataset: Dataset) -> str:
    return dataset.source or "(in memory)"


def _name(dataset: Dataset) -> str:
    """The source's name without its folders, which mean nothing elsewhere."""
    return Path(dataset.source).name or "(in memory)"


def history_entry(operation: str, arguments: Mapping[str, Any], dataset: Dataset) -> dict[str, Any]:
    """What is noted of an operation on `dataset` (see the module)."""
    try:
        version = importlib.metadata.version("armstack")
    except importlib.metadata.PackageNotFoundError:
        version = "unknown"
    source = {"source": _name(dataset), "fingerprint": fingerprint(dataset), "version": version}
    return {"operation": operation, "arguments": dict(arguments), **source}


def noted(episode: Episode, entry: Mapping[str, Any]) -> Episode:
    """The episode with one more entry in its history."""
    return dataclasses.replace(episode, meta={**episode.meta, HISTORY: [*episode.meta.get(HISTORY, ()), dict(entry)]})


def _content(episode: Episode, dataset: Dataset) -> str:
    """Equal for episodes that differ in their history only."""
    meta = {name: value for name, value in episode.meta.items() if name != HISTORY}
    return fingerprint(_with(dataset, [dataclasses.replace(episode, meta=meta)]))


def _tree(contract: RobotContract) -> dict[str, Any]:
    """The contract as nested mappings, channels by name; their order is a fact of its own."""
    tree = dataclasses.asdict(contract)
    for group in ("observation", "condition"):
        tree[f"{group} order"] = [channel["name"] for channel in tree[group]]
        tree[group] = {channel["name"]: channel for channel in tree[group]}
    return tree


def _differences(one: Any, other: Any, where: str = "") -> list[str]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        names = [*one, *(name for name in other if name not in one)]
        found = [_differences(one.get(name), other.get(name), f"{where}.{name}".lstrip(".")) for name in names]
        return [line for lines in found for line in lines]
    return [] if one == other else [f"{where}: {one!r}, there {other!r}"]
