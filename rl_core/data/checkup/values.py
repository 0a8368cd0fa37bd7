"""Checks of the numbers themselves: finite, unit quaternions, constant dimensions, ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.data.checkup.report import Finding
from rl_core.data.episode import Dataset
from rl_core.data.training_data import bad_norms

CONSTANT = 1e-6
"""A dimension whose range is below this share of max(1, |value|) counts as constant."""
OUTSIDE = 1e-6
"""Actions beyond 1 by more than this are out of range."""
GRIPPER_MARGIN = 0.1
"""Share of the stroke by which a gripper's position may lie beyond open and closed."""
LARGEST_ANGLE = 2 * np.pi
"""rad; beyond it in size an angle may be in degrees."""


def columns(dataset: Dataset) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
    """Names of the dimensions and all rows (rows, dimensions) of every low-dimensional channel, of `action` and of `reward`."""
    found: dict[str, tuple[tuple[str, ...], NDArray[Any]]] = {}
    for channel in dataset.contract.low_dimensional:
        names = tuple(f"{channel.name}.{name}" for name in channel.names)
        found[channel.name] = names, np.concatenate([episode.observations[channel.name] for episode in dataset.episodes])
    names = tuple(f"action.{name}" for name in dataset.contract.action.names)
    found["action"] = names, np.concatenate([episode.actions for episode in dataset.episodes])
    found["reward"] = ("reward",), np.concatenate([episode.rewards for episode in dataset.episodes])[:, None]
    return found


def check_finite(dataset: Dataset, figures: dict[str, Any]) -> Finding:
    """NaN and infinity, counted by dimension."""
    bad: dict[str, int] = {}
    for names, values in columns(dataset).values():
        counts = (~np.isfinite(values)).sum(axis=0)
        bad |= {name: int(count) for name, count in zip(names, counts, strict=True) if count}
    figures["not_finite"] = bad
    if bad:
        found = f"NaN or infinity: {bad}"
        return Finding(subject="finite", level="error", found=found, advice="drop these episodes; training refuses them")
    return Finding(subject="finite", level="ok", found="all numbers are finite")


def check_quaternions(dataset: Dataset, figures: dict[str, Any]) -> Finding:
    """Quaternions that are no rotation."""
    names = [channel.name for channel in dataset.contract.observation if channel.kind == "quaternion"]
    bad = {name: sum(int(bad_norms(episode.observations[name]).sum()) for episode in dataset.episodes) for name in names}
    figures["quaternions_not_unit"] = {name: count for name, count in bad.items() if count}
    if figures["quaternions_not_unit"]:
        found = f"norm isn't 1: {figures['quaternions_not_unit']}"
        return Finding(subject="quaternions", level="error", found=found, advice="x, y, z, w of norm 1 is valid; training refuses others")
    return Finding(subject="quaternions", level="ok", found=f"norm 1 in {', '.join(names)}" if names else "none")


def check_constant(dataset: Dataset, figures: dict[str, Any]) -> Finding:
    """Minimum, mean, maximum and spread of every dimension, and those that never change."""
    dimensions: dict[str, dict[str, float]] = {}
    for names, values in columns(dataset).values():
        for index, name in enumerate(names):
            column = values[:, index]
            finite = column[np.isfinite(column)].astype(np.float64)
            if len(finite):
                extremes = {"min": float(finite.min()), "max": float(finite.max())}
                dimensions[name] = {**extremes, "mean": float(finite.mean()), "std": float(finite.std())}
    constant = [
        name
        for name, of in dimensions.items()
        if name != "reward" and of["max"] - of["min"] <= CONSTANT * max(1.0, abs(of["max"]))
    ]  # fmt: skip
    figures.update(dimensions=dimensions, constant=constant)
    if constant:
        found = f"never change: {', '.join(constant)}"
        return Finding(subject="constant", level="warning", found=found, advice="the normaliser keeps them unscaled")
    return Finding(subject="constant", level="ok", found="every dimension changes")


def check_ranges(dataset: Dataset, figures: dict[str, Any]) -> Finding:
    """Observations that cannot be what the contract says: a gripper beyond open and closed, angles of many turns."""
    allowed: dict[str, tuple[float, float]] = {
        f"{channel.name}.{name}": (-LARGEST_ANGLE, LARGEST_ANGLE)
        for channel in dataset.contract.low_dimensional
        for name in channel.names
        if channel.unit == "rad"
    }
    gripper = dataset.contract.action.gripper
    opening = next((channel for channel in dataset.contract.low_dimensional if channel.name == "gripper_pos"), None)
    if gripper is not None and opening is not None and opening.unit == gripper.unit:
        low, high = sorted((gripper.open, gripper.closed))
        margin = GRIPPER_MARGIN * (high - low)
        allowed[f"gripper_pos.{gripper.name}"] = (low - margin, high + margin)
    outside: dict[str, dict[str, Any]] = {}
    for names, values in columns(dataset).values():
        for index, name in enumerate(names):
            low, high = allowed.get(name, (-np.inf, np.inf))
            count = int(((values[:, index] < low) | (values[:, index] > high)).sum())
            if count:
                outside[name] = {"rows": count, "valid": [low, high]}
    figures["outside_range"] = outside
    if outside:
        named = ", ".join(f"{name} in {of['rows']} rows ({of['valid'][0]:.3g}..{of['valid'][1]:.3g})" for name, of in outside.items())
        advice = "check the units (degrees?) and the gripper's open and closed values in the contract"
        return Finding(subject="ranges", level="warning", found=f"outside: {named}", advice=advice)
    return Finding(subject="ranges", level="ok", found="angles and gripper are within what the contract says")


def check_actions(dataset: Dataset, figures: dict[str, Any]) -> Finding:
    """Actions outside [-1, 1], counted and named by dimension; nothing is clipped."""
    sizes = np.abs(np.concatenate([episode.actions for episode in dataset.episodes]))
    outside = sizes > 1 + OUTSIDE
    counts = {name: int(n) for name, n in zip(dataset.contract.action.names, outside.sum(axis=0), strict=True) if n}
    largest = dict(zip(dataset.contract.action.names, np.nan_to_num(sizes, posinf=np.inf).max(axis=0), strict=True))
    rows = int(outside.any(axis=1).sum())
    figures.update(actions_outside=counts, steps_with_action_outside=rows)
    if rows:
        named = ", ".join(f"{name} {count} times (up to {largest[name]:.3g})" for name, count in counts.items())
        found = f"{rows} of {len(sizes)} steps ({rows / len(sizes):.1%}) leave [-1, 1]: {named}"
        return Finding(subject="actions", level="warning", found=found, advice="nothing is clipped; rescale the actions or widen `scale`")
    return Finding(subject="actions", level="ok", found="all within [-1, 1]")
