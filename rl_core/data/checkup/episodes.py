"""Checks of whole episodes: channels, counts, endings, success."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from rl_core.data.checkup.report import Finding
from rl_core.data.episode import Dataset

SUSPECT_SHARE = 0.1
"""Share of the terminal episodes that may end without success at exactly the longest length before a time limit is suspected."""


def check_channels(dataset: Dataset, figures: dict[str, Any]) -> Finding:
    """Whether every episode has every channel of the contract, in its shape."""
    missing: Counter[str] = Counter()
    misshapen: Counter[str] = Counter()
    for episode in dataset.episodes:
        for channel in dataset.contract.observation:
            if channel.name not in episode.observations:
                missing[channel.name] += 1
            elif channel.kind != "text" and np.shape(episode.observations[channel.name])[1:] != channel.shape:
                misshapen[channel.name] += 1
    figures.update(channels_missing=dict(missing), channels_misshapen=dict(misshapen))
    if missing or misshapen:
        found = f"episodes without a channel of the contract: {dict(missing)}; with another shape: {dict(misshapen)}"
        return Finding(subject="channels", level="error", found=found, advice="every episode has all channels of its contract")
    return Finding(subject="channels", level="ok", found=", ".join(channel.name for channel in dataset.contract.observation))


def check_counts(dataset: Dataset, figures: dict[str, Any]) -> Finding:
    """Episodes, steps, lengths, and uuids that come twice."""
    lengths = [len(episode) for episode in dataset.episodes]
    uuids = Counter(episode.uuid for episode in dataset.episodes)
    twice = sorted(uuid for uuid, count in uuids.items() if count > 1)
    figures.update(shortest=min(lengths), longest=max(lengths), repeated_uuids=twice)
    found = f"{len(dataset)} episodes, {dataset.steps} steps ({min(lengths)}..{max(lengths)} each)"
    if twice:
        return Finding(subject="counts", level="warning", found=f"{found}; uuids that repeat: {twice}", advice="remove the copies")
    return Finding(subject="counts", level="ok", found=found)


def check_endings(dataset: Dataset, figures: dict[str, Any]) -> Finding:
    """Terminal and truncated told apart, and whether a time limit may have been recorded as a terminal."""
    both = sum(episode.terminal and episode.truncated for episode in dataset.episodes)
    neither = sum(not episode.terminal and not episode.truncated for episode in dataset.episodes)
    terminal = [episode for episode in dataset.episodes if episode.terminal]
    longest = max(len(episode) for episode in dataset.episodes)
    at_limit = sum(len(episode) == longest and episode.success is not True for episode in terminal)
    figures.update(
        terminal=len(terminal),
        truncated=sum(episode.truncated for episode in dataset.episodes),
        terminal_and_truncated=both,
        no_ending=neither,
        unsuccessful_terminals_at_longest=at_limit,
        cut=sum(episode.meta.get("phase") == "cut" for episode in dataset.episodes),
    )
    cut = len(dataset) - len(terminal) - neither
    found = f"{len(terminal)} terminal, {cut} truncated, {neither} without an ending, {both} with both"
    if figures["cut"]:
        found += f"; {figures['cut']} cut: under way when their recording ended"
    if both or neither:
        advice = "an episode is either terminal or truncated; one that is both counts as terminal"
        return Finding(subject="endings", level="warning", found=found, advice=advice)
    all_alike = len(terminal) == len(dataset) > 1 and all(len(episode) == longest for episode in terminal)
    if all_alike or at_limit > max(1, SUSPECT_SHARE * len(terminal)):
        what = "all end" if all_alike else f"{at_limit} terminal episodes end without success"
        advice = f"{what} at exactly {longest} steps: check that a time limit wasn't recorded as a terminal, which stops bootstrapping"
        return Finding(subject="endings", level="warning", found=found, advice=advice)
    if figures["cut"]:
        return Finding(subject="endings", level="warning", found=found, advice="armstack filter IN OUT --success leaves what was cut out")
    return Finding(subject="endings", level="ok", found=found)


def check_success(dataset: Dataset, figures: dict[str, Any]) -> Finding:
    """Share of the episodes that succeed."""
    known = [episode.success for episode in dataset.episodes if episode.success is not None]
    figures["success_share"] = float(np.mean(known)) if known else None
    if not known:
        return Finding(subject="success", level="ok", found="not recorded")
    return Finding(subject="success", level="ok", found=f"{sum(known)} of {len(known)} episodes succeed ({np.mean(known):.1%})")
