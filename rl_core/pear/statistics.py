"""Running mean and deviation of observations and goals, and how they scale what networks see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from rl_core.contract import RobotContract
from rl_core.data.normalizer import ColumnStatistics, Normalizer


class RunningStatistics:
    """Mean and deviation of all rows seen so far, per dimension, in double precision.

    Args:
        size: D.
        clip: numbers are clipped to this before they count.
        least: smallest deviation given.
    """

    def __init__(self, size: int, *, clip: float, least: float) -> None:
        self.clip, self.least = clip, least
        self.count = 0
        self.total = np.zeros(size)
        self.squares = np.zeros(size)

    def update(self, values: ArrayLike) -> None:
        """Counts rows (N, D)."""
        rows = np.clip(np.asarray(values, np.float64), -self.clip, self.clip)
        self.count += len(rows)
        self.total += rows.sum(axis=0)
        self.squares += np.square(rows).sum(axis=0)

    @property
    def mean(self) -> NDArray[np.float32]:
        """(D,); 0 before the first row."""
        return (self.total / max(self.count, 1)).astype(np.float32)

    @property
    def deviation(self) -> NDArray[np.float32]:
        """(D,), at least `least`; 1 before the first row."""
        if not self.count:
            return np.ones(len(self.total), np.float32)
        variance = self.squares / self.count - np.square(self.total / self.count)
        return np.sqrt(np.maximum(variance, self.least**2)).astype(np.float32)

    def state_dict(self) -> dict[str, Any]:
        """Counts and sums."""
        return {"count": self.count, "total": self.total.copy(), "squares": self.squares.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict()`'s value, to the bit."""
        self.count, self.total, self.squares = int(state["count"]), np.array(state["total"]), np.array(state["squares"])


class InputScaling:
    """[observation, goal] as the networks take it: clip((clip(x) - shift) / scale).

    Args:
        shift, scale: (O + G,).
        clip: bound on the raw numbers.
        bound: bound on the result.
        device: where results lie.
    """

    def __init__(self, shift: ArrayLike, scale: ArrayLike, *, clip: float, bound: float, device: str | torch.device = "cpu") -> None:
        self.shift = torch.tensor(np.asarray(shift, np.float32), device=device)
        self.scale = torch.tensor(np.asarray(scale, np.float32), device=device)
        self.clip, self.bound = clip, bound

    def __call__(self, observation: Tensor, goal: Tensor) -> Tensor:
        """Observations (..., O) and goals (..., G), in their units -> (..., O + G)."""
        raw = torch.cat([observation, goal], dim=-1).to(self.shift.device)
        return ((raw.clamp(-self.clip, self.clip) - self.shift) / self.scale).clamp(-self.bound, self.bound)

    def normalizer(self, contract: RobotContract) -> Normalizer:
        """The same statistics under the contract's names, for a bundle."""
        size, names = contract.action.size, contract.action.names
        action = ColumnStatistics(names=names, mode="identity", shift=np.zeros(size, np.float32), scale=np.ones(size, np.float32))
        shift, scale = self.shift.cpu().numpy(), self.scale.cpu().numpy()
        observation = ColumnStatistics(names=contract.observation_names, mode="mean_std", shift=shift, scale=scale)
        return Normalizer({"observation": observation, "action": action})
