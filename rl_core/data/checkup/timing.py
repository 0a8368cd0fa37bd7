"""Checks of time: stamps, rate, age of observations, messages that never came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rl_core.data.checkup.report import Finding
from rl_core.data.episode import Dataset, Episode
from rl_core.data.training_data import RATE_TOLERANCE, true_period_s

LATE = 1.5
"""A step that takes more than this many periods is late."""


def check_stamps(dataset: Dataset, figures: dict[str, Any]) -> Finding:
    """Stamps that repeat or go backwards."""
    gaps = np.concatenate([np.diff(episode.stamps_ns) for episode in dataset.episodes])
    same, back = int((gaps == 0).sum()), int((gaps < 0).sum())
    figures.update(stamps_repeated=same, stamps_backwards=back)
    if same or back:
        found = f"{same} stamps repeat, {back} go backwards"
        return Finding(subject="stamps", level="error", found=found, advice="keep the source's own stamps; training refuses these")
    return Finding(subject="stamps", level="ok", found="every stamp is later than the one before")


def check_rate(dataset: Dataset, figures: dict[str, Any]) -> Finding:
    """The declared rate against the true one, jitter and gaps."""
    gaps = np.concatenate([np.diff(episode.stamps_ns) for episode in dataset.episodes]) * 1e-9
    declared, true = 1.0 / dataset.contract.action.period_s, 1.0 / max(true_period_s(dataset), 1e-9)
    jitter, worst, late = float(gaps.std()), float(gaps.max()), int((gaps > LATE / declared).sum())
    figures.update(declared_hz=declared, true_hz=true, jitter_s=jitter, longest_gap_s=worst, late_steps=late)
    found = f"declared {declared:.4g} Hz, true {true:.4g} Hz, jitter {jitter * 1e3:.3g} ms, longest gap {worst * 1e3:.4g} ms"
    if late:
        found += f", {late} steps took more than {LATE} periods"
    if abs(declared / true - 1) > RATE_TOLERANCE:
        advice = f"`armstack resample IN OUT --rate-hz {declared:.4g}`, or declare the true period; training refuses more than 10 % off"
        return Finding(subject="rate", level="error", found=found, advice=advice)
    if late:
        advice = "steps are missing or late: an action counts for one period only; look at the source's gap counts, or `armstack resample`"
        return Finding(subject="rate", level="warning", found=found, advice=advice)
    return Finding(subject="rate", level="ok", found=found)


def check_ages(dataset: Dataset, figures: dict[str, Any]) -> Finding:
    """How old each channel's samples were when they were used, against `max_age_s`, and how often a new one came."""
    true_hz = 1.0 / max(true_period_s(dataset), 1e-9)
    figures["observation_age"] = {}
    faults, worst = [], []
    for channel in dataset.contract.observation:
        aged = [episode for episode in dataset.episodes if channel.name in episode.observation_age_ns]
        if not aged:
            continue
        ages = np.concatenate([episode.observation_age_ns[channel.name] for episode in aged]) * 1e-9
        p50, p95 = (float(value) for value in np.percentile(ages, [50, 95]))
        too_old, early, fresh_hz = int((ages > channel.max_age_s).sum()), int((ages < 0).sum()), _fresh_hz(aged, channel.name)
        figures["observation_age"][channel.name] = {
            "p50_s": p50,
            "p95_s": p95,
            "max_s": float(ages.max()),
            "max_age_s": channel.max_age_s,
            "too_old": too_old,
            "negative": early,
            "declared_hz": channel.rate_hz,
            "fresh_hz": fresh_hz,
        }
        worst.append(f"{channel.name} {p50 * 1e3:.3g}/{p95 * 1e3:.3g}/{ages.max() * 1e3:.3g}")
        if too_old:
            faults.append(f"{channel.name} is older than {channel.max_age_s:g} s in {too_old} of {len(ages)} observations")
        if early:
            faults.append(f"{channel.name} is from the future in {early} (two clocks?)")
        if channel.rate_hz and fresh_hz < (1 - RATE_TOLERANCE) * min(channel.rate_hz, true_hz):
            faults.append(f"{channel.name} is declared at {channel.rate_hz:g} Hz and gave {fresh_hz:.3g} new samples a second")
    if not worst:
        return Finding(subject="age", level="ok", found="not recorded")
    found = f"p50/p95/max in ms: {', '.join(worst)}"
    if faults:
        advice = "a policy refuses what is older than max_age_s: find what holds the source up, or declare what it really does"
        return Finding(subject="age", level="warning", found=f"{'; '.join(faults)}; {found}", advice=advice)
    return Finding(subject="age", level="ok", found=found)


def _fresh_hz(episodes: list[Episode], channel: str) -> float:
    """New samples a second, over the episodes."""
    new = sum(int((np.diff(episode.stamps_ns - episode.observation_age_ns[channel]) > 0).sum()) for episode in episodes)
    duration = sum(int(episode.stamps_ns[-1] - episode.stamps_ns[0]) for episode in episodes) * 1e-9
    return new / max(duration, 1e-9)


def check_gaps(dataset: Dataset, figures: dict[str, Any]) -> Finding:
    """Messages that a recorder missed, summed by topic over the episodes' `meta["gaps"]` {topic: {received, lost, dropped}}."""
    totals: dict[str, dict[str, int]] = {}
    counted = unreadable = 0
    for episode in dataset.episodes:
        if "gaps" not in episode.meta:
            continue
        counted += 1
        try:
            for topic, counts in dict(episode.meta["gaps"]).items():
                total = totals.setdefault(str(topic), {"received": 0, "lost": 0, "dropped": 0})
                for name in total:
                    total[name] += int(counts[name])
        except (TypeError, ValueError, KeyError):
            unreadable += 1
    figures.update(sequence_gaps=totals, episodes_with_gap_counts=counted, unreadable_gap_counts=unreadable)
    missing = {topic: counts for topic, counts in totals.items() if counts["lost"] + counts["dropped"]}
    if unreadable:
        found = f"the counts of {unreadable} episodes are not readable; valid: {{topic: {{received, lost, dropped}}}}"
        return Finding(subject="gaps", level="warning", found=found)
    if missing:
        found = f"messages missing in the recording: {', '.join(_missing(topic, of) for topic, of in missing.items())}"
        advice = "lost: on the way to the recorder; dropped: it could not write them. Record fewer topics or to a faster disk"
        return Finding(subject="gaps", level="warning", found=found, advice=advice)
    return Finding(subject="gaps", level="ok", found=f"no message missing on {len(totals)} topics" if counted else "not counted")


def _missing(topic: str, counts: Mapping[str, int]) -> str:
    sent = sum(counts.values()) - counts["dropped"]  # what was dropped had been received
    return f"{topic} {counts['lost']} lost and {counts['dropped']} dropped of {sent}"
