"""Motions: what a dynamical system imitates. Which channels are the state, where its goal and its unit are, and how a motion moves the arm.

The state y stacks the state channels, each relative to its goal: vectors (v - v_goal) / scale in units of their largest excursion over all
demonstrations (one scale for all of them), quaternions the rotation vector of q q_goal^-1 in rad. So y = 0 is the goal. Turns keep their
unit because hands that hardly turn in the demonstrations are turned all the same by a push.

Actions are matched by name: `x` is moved by the first state dimension called `x`, `rx ry rz` by the quaternion, a joint by the joint of
that name. Other dimensions, such as a gripper, are not moved by the state.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Channel, ContractError, RobotContract
from rl_core.contractive import rotation
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.normalizer import ColumnStatistics, Normalizer

Array = NDArray[np.float64]
TURNS = ("rx", "ry", "rz")
POSE = ("eef_pos", "eef_quat")
"""State channels of an end-effector action, where the contract has them."""


def motion_contract(contract: RobotContract, goal_channel: str = "") -> RobotContract:
    """The contract a motion needs: the state channels, then the channel of the goal, if any.

    For end-effector actions the state is the tool's pose where there is one; otherwise it is every low-dimensional channel.

    Raises:
        ContractError: no such channel, a history, or a state that moves no action dimension.
    """
    names = [channel.name for channel in contract.low_dimensional if channel.name != goal_channel]
    if contract.action.space == "end_effector" and POSE[0] in names:
        names = [name for name in POSE if name in names]
    needed = contract.select([*names, *([goal_channel] if goal_channel else [])])
    past = [channel.name for channel in needed.observation if channel.history != 1]
    if past:
        raise ContractError(f"channels {past} have a history; valid for a motion: the newest sample only (history 1)")
    state = needed.observation[: len(names)]
    if goal_channel and (goal := needed.observation[-1]).size != state[0].size:
        raise ContractError(f"goal_channel {goal_channel!r} has {goal.size} numbers, valid: {state[0].size}, as {state[0].name!r}")
    if not any(name in _dimension_names(state) for name in contract.action.names):
        raise ContractError(f"no action of {contract.action.names} is moved by the state {_dimension_names(state)}; valid: equal names")
    return needed


def _dimension_names(channels: tuple[Channel, ...]) -> tuple[str, ...]:
    return tuple(name for channel in channels for name in (TURNS if channel.kind == "quaternion" else channel.names))


class MotionFrame:
    """Raw channels to states and back to actions; its numbers are the bundle's normaliser.

    Args:
        contract: see `motion_contract`.
        normalizer: column `observation`: shift is the goal (with a goal channel: what is added to it), scale the unit.
        goal_channel: see `ContractiveConfig.goal_channel`.
        period_steps: how many of the model's steps one period of the contract is.

    Attributes:
        size: n_y, numbers in the state.
        units: (n_y,) what 1 is, in the channel's unit.
        names: (n_y,) names of the state's dimensions.
        moved: action dimensions that the state moves.
        extra: the others.
        width: raw numbers of the state channels.
    """

    def __init__(self, contract: RobotContract, normalizer: Normalizer, *, goal_channel: str, period_steps: float) -> None:
        self.contract, self.normalizer, self.goal_channel, self.period_steps = contract, normalizer, goal_channel, period_steps
        state = contract.observation[: len(contract.observation) - bool(goal_channel)]
        statistics, action = normalizer.columns["observation"], contract.action
        self.names = _dimension_names(state)
        self.size = len(self.names)
        self._state, units, first = [], [], 0
        for channel in state:
            self._state.append((channel, slice(first, first + channel.size)))
            units += [float(statistics.scale[first])] * (3 if channel.kind == "quaternion" else channel.size)
            first += channel.size
        self.units = np.array(units)
        self.width = first
        self._goal = statistics.shift[:first].astype(np.float64)
        drivers = np.array([self.names.index(name) if name in self.names else -1 for name in action.names])
        self.moved, self.extra = np.flatnonzero(drivers >= 0), np.flatnonzero(drivers < 0)
        self._drivers = drivers[self.moved]
        self._scale = np.array(action.scale)[self.moved] * (action.period_s if action.meaning == "velocity" else 1.0)

    def goal(self, raw: NDArray[Any]) -> Array:
        """Raw state (n, width) of the goal of motions that begin at raw observations (n, O)."""
        goal = np.repeat(self._goal[None], len(raw), axis=0)
        if self.goal_channel:
            goal[:, : raw.shape[1] - self.width] += raw[:, self.width :]
        return goal

    def states(self, raw: NDArray[Any], goal: Array) -> Array:
        """y (..., n_y) of raw observations (..., O or width) relative to raw goals (..., width)."""
        parts = []
        for channel, columns in self._state:
            value, target = np.asarray(raw[..., columns], np.float64), goal[..., columns]
            if channel.kind == "quaternion":
                parts.append(rotation.to_vector(rotation.multiply(value, rotation.inverse(target))))
                continue
            difference = value - target
            for index in (channel.names.index(name) for name in channel.wraps):
                difference[..., index] = (difference[..., index] + np.pi) % (2 * np.pi) - np.pi
            parts.append(difference)
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
        return joined / self.units

    def values(self, next_state: Array, measured: Array, goal: Array) -> Array:
        """Action values (n, len(moved)) that lead from `measured` to `next_state` (n, n_y), unclipped."""
        absolute = self.contract.action.meaning == "absolute"
        parts, first = [], 0
        for channel, columns in self._state:
            size = 3 if channel.kind == "quaternion" else channel.size
            here = slice(first, first + size)
            wanted, found = next_state[:, here] * self.units[here], measured[:, here] * self.units[here]
            first += size
            if channel.kind == "quaternion":
                turned = rotation.from_vector(wanted)
                back = rotation.inverse(rotation.from_vector(found))
                parts.append(rotation.to_vector(rotation.multiply(turned, goal[:, columns] if absolute else back)))
            else:
                parts.append(wanted + goal[:, columns] if absolute else wanted - found)
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
        return joined[:, self._drivers] / self._scale


def resample(path: Array, lengths: NDArray[np.int64], points: NDArray[np.int64], most: int) -> Array:
    """Padded paths (B, L, D) -> (B, most, D): `points` (B,) equally spaced samples from each path's start to its end, then its end."""
    share = np.minimum(np.arange(most) / (points - 1)[:, None], 1.0) * (lengths - 1)[:, None]
    before = np.minimum(share.astype(np.int64), (lengths - 2)[:, None])
    rows = np.arange(len(path))[:, None]
    weight = (share - before)[..., None]
    return (1.0 - weight) * path[rows, before] + weight * path[rows, before + 1]


def fit_frame(dataset: Dataset, contract: RobotContract, *, goal_channel: str, horizon: int, stretched: bool) -> MotionFrame:
    """The frame of a dataset's demonstrations; each of them is shifted by its own end.

    Args:
        dataset: demonstrations.
        contract: see `motion_contract`.
        goal_channel: see `ContractiveConfig.goal_channel`.
        horizon: points of a motion.
        stretched: all demonstrations take equally long (the mean duration); otherwise the longest takes `horizon` points.

    Raises:
        DatasetError: no demonstration with two steps.
    """
    paths = [episode.flat_observation(contract) for episode in dataset.episodes if len(episode) > 1]
    if not paths:
        raise DatasetError(f"dataset {dataset.source or '(in memory)'}: no demonstration of 2 steps or more")
    fitted = Normalizer.fit(dataset, contract, observation="min_max")  # names the constant dimensions in a warning
    observation = fitted.columns["observation"]
    state = contract.observation[: len(contract.observation) - bool(goal_channel)]
    width = sum(channel.size for channel in state)
    shift, scale = np.zeros(len(observation.names)), np.ones(len(observation.names))
    finals = np.stack([path[-1, :width].astype(np.float64) for path in paths])
    offsets = finals.copy()
    if goal_channel:
        offsets[:, : state[0].size] -= np.stack([path[0, width:] for path in paths])
    first = 0
    for channel in state:
        columns = slice(first, first + channel.size)
        first += channel.size
        if channel.kind == "quaternion":
            aligned = offsets[:, columns] * np.where(offsets[:, columns] @ offsets[0, columns] < 0, -1.0, 1.0)[:, None]
            shift[columns] = aligned.sum(0) / max(float(np.linalg.norm(aligned.sum(0))), 1e-12)
            continue
        shift[columns] = offsets[:, columns].mean(0)
        excursions = [np.linalg.norm(p[:, columns] - f[columns], axis=-1).max() for p, f in zip(paths, finals, strict=True)]
        scale[columns] = max(excursions) if max(excursions) > 1e-6 else 1.0
    columns_of = {
        "observation": ColumnStatistics(
            names=observation.names, mode="min_max", shift=shift.astype(np.float32), scale=scale.astype(np.float32), wraps=observation.wraps
        ),
        "action": fitted.columns["action"],
    }
    steps = [len(path) - 1 for path in paths]
    period_steps = (horizon - 1) / float(np.mean(steps) if stretched else max(steps))
    return MotionFrame(contract, Normalizer(columns_of), goal_channel=goal_channel, period_steps=period_steps)
