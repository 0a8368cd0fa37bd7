"""A dataset at another rate: what was recorded irregularly, or at a rate that the arm is not driven at, on an even grid of time.

Observation k of an episode is at its first stamp plus k periods; the last one is the episode's last, with its stamp on the grid.

    numbers     `linear` between the samples before and after (angles in `wraps` the short way round), or `hold`, the sample before
    quaternion  turned evenly between the two (slerp); with `hold` the sample before
    pictures, whole numbers, truth values: the nearest sample
    actions     absolute: the one in force; delta: summed, a step's delta spread evenly over its time; velocity: the mean over the period;
                the gripper: the one in force
    rewards     summed, each counted at the observation that followed it

An age is the new stamp minus when the sample was taken, of interpolated numbers the older of the two.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation, Slerp

from rl_core.contract import Action, Channel, ContractError
from rl_core.data.editing import history_entry, noted
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.training_data import bad_norms, true_period_s

Numbers = Literal["linear", "hold"]
LONG = 1.5
"""A recorded step of more than this many mean periods is a gap: what is put into it was not recorded."""

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Resampled:
    """`dataset`, and over all episodes the new steps that lie in gaps of the recording and those with an action outside [-1, 1]."""

    dataset: Dataset
    in_gaps: int
    actions_outside: int


def resample(dataset: Dataset, rate_hz: float, numbers: Numbers = "linear") -> Resampled:
    """`dataset` at `rate_hz`, with that rate in its contract; see the module.

    Raises:
        DatasetError: a rate that no contract can have, no step, stamps that repeat or go back, or a quaternion that is no rotation.
    """
    contract = dataset.contract
    try:
        action = dataclasses.replace(contract.action, period_s=1 / rate_hz)
    except (ContractError, ZeroDivisionError) as error:
        raise DatasetError(f"rate {rate_hz:g} Hz, valid: 10..500") from error
    if not dataset.steps:
        raise DatasetError(f"{dataset.source or '(in memory)'}: no steps to resample in {len(dataset)} episodes")
    long_ns = LONG * true_period_s(dataset) * 1e9
    entry = history_entry("resample", {"rate_hz": rate_hz, "numbers": numbers}, dataset)
    episodes, in_gaps = [], 0
    for episode in dataset.episodes:
        grid = _grid(episode, 1e9 / rate_hz, f"{dataset.source or '(in memory)'}: episode {episode.uuid}")
        _require_rotations(episode, contract.observation, dataset.source)
        steps = np.diff(episode.stamps_ns)
        bridged = int((steps[_before(episode.stamps_ns, grid[:-1])] > long_ns).sum())
        changed = _resampled(episode, grid, dataset.contract.observation, contract.action, numbers)
        episodes.append(noted(changed, {**entry, "steps_before": len(episode), "steps_in_gaps": bridged}))
        in_gaps += bridged
    outside = sum(int((np.abs(episode.actions) > 1 + 1e-6).any(axis=1).sum()) for episode in episodes)
    made = dataclasses.replace(dataset, contract=dataclasses.replace(contract, action=action), episodes=tuple(episodes))
    return Resampled(dataset=made, in_gaps=in_gaps, actions_outside=outside)


def _grid(episode: Episode, period_ns: float, where: str) -> NDArray[np.int64]:
    stamps = episode.stamps_ns
    if (np.diff(stamps) <= 0).any():
        raise DatasetError(f"{where}: stamps repeat or go back; valid: each later than the one before")
    count = max(1, round(float(stamps[-1] - stamps[0]) / period_ns))
    return stamps[0] + np.rint(np.arange(count + 1) * period_ns).astype(np.int64)


def _require_rotations(episode: Episode, channels: tuple[Channel, ...], source: str) -> None:
    for channel in channels:
        if channel.kind == "quaternion" and (bad := np.flatnonzero(bad_norms(episode.observations[channel.name]))).size:
            where = f"{source or '(in memory)'}: episode {episode.uuid}"
            raise DatasetError(f"{where}: {channel.name} at observation {bad[0]} is no rotation; valid: norm 1")


def _before(stamps_ns: NDArray[np.int64], times_ns: NDArray[np.int64]) -> NDArray[np.intp]:
    """Index of the step in which each time lies."""
    return np.clip(np.searchsorted(stamps_ns, times_ns, side="right") - 1, 0, len(stamps_ns) - 2)


def _resampled(episode: Episode, grid: NDArray[np.int64], channels: tuple[Channel, ...], action: Action, numbers: Numbers) -> Episode:
    stamps = episode.stamps_ns
    sampled = grid.copy()
    sampled[-1] = stamps[-1]  # what the last action led to, wherever the grid ends
    observations, ages = {}, {}
    for channel in channels:
        values = np.asarray(episode.observations[channel.name])
        index = _sample(channel, stamps, sampled, numbers)
        between = np.issubdtype(values.dtype, np.floating) and numbers == "linear"
        observations[channel.name] = _between(values, stamps, sampled, channel) if between else values[index]
        if channel.name in episode.observation_age_ns:
            ages[channel.name] = grid - (stamps - np.asarray(episode.observation_age_ns[channel.name]))[index]
    applied = episode.action_applied
    return dataclasses.replace(
        episode,
        observations=observations,
        observation_age_ns=ages,
        actions=_actions(episode.actions, stamps, grid, action),
        action_applied=None if applied is None else _actions(applied, stamps, grid, action),
        rewards=_sums(episode.rewards, stamps, grid),
        stamps_ns=grid,
    )


def _sample(channel: Channel, stamps: NDArray[np.int64], times: NDArray[np.int64], numbers: Numbers) -> NDArray[np.intp]:
    """Index of the sample that is taken, or from which on there is interpolation."""
    before = np.clip(np.searchsorted(stamps, times, side="right") - 1, 0, len(stamps) - 1)
    if channel.kind != "image" and (numbers == "hold" or np.dtype(channel.dtype).kind == "f"):
        return before
    after = np.minimum(before + 1, len(stamps) - 1)
    return np.where(np.abs(stamps[after] - times) < np.abs(times - stamps[before]), after, before)


def _between(values: Array, stamps: NDArray[np.int64], times: NDArray[np.int64], channel: Channel) -> Array:
    seconds, at = (stamps - stamps[0]) * 1e-9, np.clip((times - stamps[0]) * 1e-9, 0, float(stamps[-1] - stamps[0]) * 1e-9)
    if channel.kind == "quaternion":
        turned = Slerp(seconds, Rotation.from_quat(values))(at).as_quat()
        held = values[np.clip(np.searchsorted(stamps, times, side="right") - 1, 0, len(stamps) - 1)]
        sign = np.where((turned * held).sum(axis=1, keepdims=True) < 0, -1.0, 1.0)  # q and -q are one rotation: the recorded one's side
        return (sign * turned).astype(values.dtype)
    columns = []
    for index, name in enumerate(channel.names):
        column = values[:, index].astype(np.float64)
        if name in channel.wraps:
            turned = np.interp(at, seconds, np.unwrap(column))
            columns.append((turned + np.pi) % (2 * np.pi) - np.pi)
        else:
            columns.append(np.interp(at, seconds, column))
    return np.stack(columns, axis=1).astype(values.dtype)


def _actions(values: NDArray[np.float32], stamps: NDArray[np.int64], grid: NDArray[np.int64], action: Action) -> NDArray[np.float32]:
    result = np.array(values[_before(stamps, grid[:-1])], np.float64)
    if action.meaning != "absolute":
        moved = values.astype(np.float64)
        seconds = np.diff(stamps)[:, None] * 1e-9
        sums = np.concatenate([np.zeros((1, moved.shape[1])), np.cumsum(moved * (seconds if action.meaning == "velocity" else 1), axis=0)])
        ends = grid.copy()
        ends[-1] = stamps[-1]
        at, times = np.minimum(ends, stamps[-1]) - stamps[0], stamps - stamps[0]
        change = np.diff(np.stack([np.interp(at, times, column) for column in sums.T], axis=1), axis=0)
        columns = slice(0, action.size - (action.gripper is not None))
        period_s = np.diff(grid)[:, None] * 1e-9 if action.meaning == "velocity" else 1.0
        result[:, columns] = (change / period_s)[:, columns]
    return result.astype(np.float32)


def _sums(rewards: NDArray[np.float32], stamps: NDArray[np.int64], grid: NDArray[np.int64]) -> NDArray[np.float32]:
    """Each reward in the new step in which its observation lies; none is lost."""
    step = np.clip(np.searchsorted(grid, stamps[1:], side="left") - 1, 0, len(grid) - 2)
    return np.bincount(step, weights=rewards.astype(np.float64), minlength=len(grid) - 1).astype(np.float32)
