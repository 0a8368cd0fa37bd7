"""Batches mixed from several samplers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict

from rl_core.data.episode import DatasetError
from rl_core.data.samplers.base import Sampler


class WeightedMixture(Sampler):
    """Each row of a batch comes from one of the samplers, with probability in proportion to its weight.

    Args:
        parts: name -> (sampler, weight); their batches must have equal keys.
        batch_size: rows in `next_batch`.
        seed: seed of the generator that splits the batch; each sampler has its own.
    """

    def __init__(self, parts: Mapping[str, tuple[Sampler, float]], *, batch_size: int, seed: int) -> None:
        super().__init__(batch_size, seed)
        weights = np.array([weight for _, weight in parts.values()], np.float64)
        if not len(weights) or not np.isfinite(weights).all() or (weights < 0).any() or not weights.sum() > 0:
            raise ValueError(f"weights { {name: weight for name, (_, weight) in parts.items()} }, valid: finite, 0 or more, a sum above 0")
        self.samplers = {name: sampler for name, (sampler, _) in parts.items()}
        self._shares = weights / weights.sum()

    def sample(self, count: int) -> TensorDict:
        """See `Sampler.sample`; the rows of each sampler stay together, in the order of the parts."""
        counts = self.rng.multinomial(count, self._shares)
        batches = {name: sampler.sample(int(n)) for (name, sampler), n in zip(self.samplers.items(), counts, strict=True) if n}
        keys = {name: sorted(map(str, batch.keys())) for name, batch in batches.items()}
        if len({tuple(names) for names in keys.values()}) > 1:
            raise DatasetError(f"the samplers of a mixture give different keys: {keys}; valid: equal keys")
        parts = list(batches.values())
        values = {key: torch.cat([part[key] for part in parts]) for key in map(str, parts[0].keys())}
        return TensorDict(values, batch_size=[count])

    def state_dict(self) -> dict[str, Any]:
        """See `Sampler.state_dict`."""
        return {**super().state_dict(), "samplers": {name: sampler.state_dict() for name, sampler in self.samplers.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See `Sampler.load_state_dict`; raises DatasetError when the parts have other names."""
        if state["samplers"].keys() != self.samplers.keys():
            raise DatasetError(f"the checkpoint mixes {sorted(state['samplers'])}, this run mixes {sorted(self.samplers)}")
        super().load_state_dict(state)
        for name, sampler in self.samplers.items():
            sampler.load_state_dict(state["samplers"][name])
