"""States that a bundle carries, so that a skill can be inferred for any reward that is told later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rl_core.bundle import Bundle, BundleError
from rl_core.data.replay import ReplayBuffer

_COLUMNS = ("observation", "action", "next_observation")


@dataclass(frozen=True, kw_only=True)
class CarriedStates:
    """Transitions without rewards: observation (N, S), action (N, A), next_observation (N, S)."""

    observation: Tensor
    action: Tensor
    next_observation: Tensor

    @classmethod
    def from_replay(cls, replay: ReplayBuffer, count: int, *, size: int | None = None) -> CarriedStates:
        """`count` different rows spread evenly over the replay, or all there are; of an observation its first `size` numbers."""
        rows = np.unique(np.linspace(0, len(replay) - 1, min(count, len(replay))).round().astype(np.int64))
        columns = replay.gather_columns(rows)
        return cls(**{name: columns[name][:, : None if name == "action" else size].clone() for name in _COLUMNS})

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> CarriedStates:
        """Those that `arrays` wrote.

        Raises:
            BundleError: the bundle carries none, or damaged ones.
        """
        missing = [name for name in _COLUMNS if f"states.{name}" not in bundle.arrays]
        if missing:
            raise BundleError(f"bundle of method {bundle.method!r}: carries no states {missing}; `armstack pretrain` writes them")
        columns = {name: bundle.arrays[f"states.{name}"] for name in _COLUMNS}
        rows = {name: len(values) for name, values in columns.items()}
        if len(set(rows.values())) != 1 or not all(torch.isfinite(values).all() for values in columns.values()):
            raise BundleError(f"bundle of method {bundle.method!r}: states with {rows} rows, valid: equally many, of finite numbers")
        return cls(**columns)

    def arrays(self) -> dict[str, Tensor]:
        """Arrays of a bundle."""
        return {f"states.{name}": getattr(self, name) for name in _COLUMNS}

    def __len__(self) -> int:
        return len(self.observation)
