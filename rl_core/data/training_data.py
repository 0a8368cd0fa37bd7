"""From episodes to what a learner may see: checked, with applied actions, and as transitions."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset, DatasetError, Episode

logger = logging.getLogger(__name__)

STATES = "states"
"""Channel of episodes that hold nothing but simulator states."""

APPLIED_TOLERANCE = 0.01
"""Share of the action range (-1..1, so 0.02) by which requested and applied action may differ before the applied one is used."""

NORM_TOLERANCE = 1e-2
"""How far a quaternion's norm may be from 1."""

RATE_TOLERANCE = 0.1
"""Largest relative difference between the contract's period and the true one that training accepts."""


def require_trainable(dataset: Dataset) -> None:
    """Checks the faults that make training wrong without a visible error.

    Raises:
        DatasetError: no transitions; states without observations; non-finite numbers; quaternions whose norm isn't 1; stamps that
            repeat or go backwards; or a true rate more than 10 % off the contract's (replay would run at the wrong speed).
            Names episode, field and step.
    """
    if not dataset.steps:
        raise DatasetError(f"dataset {dataset.source or '(in memory)'}: no transitions in {len(dataset)} episodes")
    for index, episode in enumerate(dataset.episodes):
        where = f"dataset {dataset.source or '(in memory)'}, episode {index} ({episode.uuid})"
        if set(episode.observations) == {STATES}:
            raise DatasetError(f"{where}: holds simulator states only; valid: observations, extracted from them beforehand")
        for name, values in _numbers(episode).items():
            bad = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
            if len(bad):
                raise DatasetError(f"{where}: {name} is not finite at step {bad[0]} ({len(bad)} rows); valid: finite numbers")
        for channel in dataset.contract.observation:
            if channel.kind == "quaternion" and channel.name in episode.observations:
                bad = np.flatnonzero(bad_norms(episode.observations[channel.name]))
                if len(bad):
                    raise DatasetError(f"{where}: quaternion {channel.name!r} hasn't norm 1 at step {bad[0]} ({len(bad)} rows)")
        gaps = np.diff(episode.stamps_ns)
        if (gaps <= 0).any():
            step = int(np.flatnonzero(gaps <= 0)[0]) + 1
            raise DatasetError(f"{where}: stamps_ns[{step}] is {gaps[step - 1]} ns after the one before it; valid: more than 0")
    declared = dataset.contract.action.period_s
    true = true_period_s(dataset)
    if abs(true / declared - 1) > RATE_TOLERANCE:
        raise DatasetError(
            f"dataset {dataset.source or '(in memory)'}: recorded at {1 / true:.4g} Hz, but its contract says {1 / declared:.4g} Hz; "
            f"valid: a contract whose action.period_s is the true period, {true:.4g} s, within {RATE_TOLERANCE:.0%}"
        )


def bad_norms(quaternions: NDArray[Any]) -> NDArray[np.bool_]:
    """(N,) which of the quaternions (N, 4) are no rotation."""
    return np.abs(np.linalg.norm(np.asarray(quaternions, np.float64), axis=-1) - 1) > NORM_TOLERANCE


def true_period_s(dataset: Dataset) -> float:
    """Mean time between observations over all episodes, seconds, from the stamps."""
    duration = sum(int(episode.stamps_ns[-1]) - int(episode.stamps_ns[0]) for episode in dataset.episodes)
    return duration * 1e-9 / dataset.steps


def training_actions(dataset: Dataset) -> tuple[NDArray[np.float32], ...]:
    """The actions (T, A) of each episode to train on.

    A step whose applied action (what the command filter let through) differs from the requested one by more than 1 % of the
    range in any dimension uses the applied one: the next observation followed from it. The number of such steps is logged.
    """
    result, replaced = [], 0
    for episode in dataset.episodes:
        actions = np.asarray(episode.actions, np.float32)
        if episode.action_applied is not None:
            differs = (np.abs(episode.action_applied - actions) > APPLIED_TOLERANCE * 2).any(axis=1)
            actions = np.where(differs[:, None], episode.action_applied, actions).astype(np.float32)
            replaced += int(differs.sum())
        result.append(actions)
    if replaced:
        logger.warning(
            "training uses the applied action instead of the requested one in %d of %d steps: they differ by more than %g %% of range",
            replaced,
            dataset.steps,
            APPLIED_TOLERANCE * 100,
        )
    return tuple(result)


def transitions(dataset: Dataset, contract: RobotContract) -> dict[str, NDArray[np.float32]]:
    """Flat arrays over all episodes: observation (N, O), action (N, A), reward (N,), terminal (N,), next_observation (N, O)."""
    require_trainable(dataset)
    observations = [episode.flat_observation(contract) for episode in dataset.episodes]
    return {
        "observation": np.concatenate([values[:-1] for values in observations]),
        "action": np.concatenate(training_actions(dataset)),
        "reward": np.concatenate([np.asarray(episode.rewards, np.float32) for episode in dataset.episodes]),
        "terminal": np.concatenate([terminal_flags(episode) for episode in dataset.episodes]),
        "next_observation": np.concatenate([values[1:] for values in observations]),
    }


def terminal_flags(episode: Episode) -> NDArray[np.float32]:
    """(T,): 1 at the last step of an episode that ended its task, else 0. A time limit is no end: its value is bootstrapped."""
    flags = np.zeros(len(episode), np.float32)
    flags[-1:] = float(episode.terminal)
    return flags


def _numbers(episode: Episode) -> dict[str, NDArray[np.floating]]:
    fields = {f"observation {name!r}": np.asarray(values) for name, values in episode.observations.items()}
    fields |= {"actions": np.asarray(episode.actions), "rewards": np.asarray(episode.rewards)}
    if episode.action_applied is not None:
        fields["action_applied"] = np.asarray(episode.action_applied)
    return {name: values for name, values in fields.items() if np.issubdtype(values.dtype, np.floating)}
