"""Single transitions: uniformly with replacement, or in shuffled epochs without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from tensordict import TensorDict

from rl_core.data.episode import DatasetError
from rl_core.data.replay import ReplayBuffer
from rl_core.data.samplers.base import Sampler


class UniformSampler(Sampler):
    """Transitions drawn independently, each equally likely, or in proportion to `weights`.

    Args:
        replay: may grow meanwhile, unless there are weights.
        batch_size: rows in `next_batch`.
        seed: seed of the generator.
        weights: (len(replay),) not negative, see `rl_core.data.weights.transition_weights`.
    """

    def __init__(self, replay: ReplayBuffer, *, batch_size: int, seed: int, weights: ArrayLike | None = None) -> None:
        super().__init__(batch_size, seed)
        self.replay = replay
        self._cumulative = None if weights is None else np.cumsum(np.asarray(weights, np.float64))
        if self._cumulative is not None and (len(self._cumulative) != len(replay) or not self._cumulative[-1] > 0):
            raise DatasetError(f"weights: {len(self._cumulative)} with sum {self._cumulative[-1]}, valid: {len(replay)} with a sum above 0")

    def sample(self, count: int) -> TensorDict:
        """See `Sampler.sample`; raises DatasetError while the replay is empty."""
        size = len(self.replay)
        if not size:
            raise DatasetError("the replay buffer is empty; add transitions before sampling")
        if self._cumulative is None:
            return self.replay.gather(self.rng.integers(0, size, count))
        draws = self.rng.random(count) * self._cumulative[-1]
        return self.replay.gather(np.searchsorted(self._cumulative, draws, side="right"))


class EpochSampler(Sampler):
    """Every transition once an epoch, in an order shuffled anew each epoch; batches are always full, so one may span two epochs.

    Args:
        replay: all data; it must not grow.
        batch_size: rows in `next_batch`.
        seed: seed of the generator.
    """

    def __init__(self, replay: ReplayBuffer, *, batch_size: int, seed: int) -> None:
        super().__init__(batch_size, seed)
        if not len(replay):
            raise DatasetError("the replay buffer is empty; an epoch needs at least one transition")
        self.replay = replay
        self.epoch = -1
        self._shuffle()

    def _shuffle(self) -> None:
        # the generator before the shuffle is kept: the order follows from it, so a checkpoint needs no permutation
        self._before_shuffle = self.rng.bit_generator.state
        self._order = self.rng.permutation(len(self.replay))
        self._position = 0
        self.epoch += 1

    def sample(self, count: int) -> TensorDict:
        """See `Sampler.sample`."""
        if len(self.replay) != len(self._order):
            raise DatasetError(f"the replay buffer grew from {len(self._order)} to {len(self.replay)} transitions; epochs need fixed data")
        taken = []
        while count:
            if self._position == len(self._order):
                self._shuffle()
            part = self._order[self._position : self._position + count]
            self._position += len(part)
            count -= len(part)
            taken.append(part)
        return self.replay.gather(np.concatenate(taken) if len(taken) > 1 else taken[0])

    def state_dict(self) -> dict[str, Any]:
        """See `Sampler.state_dict`."""
        return {"generator": self._before_shuffle, "epoch": self.epoch, "position": self._position, "size": len(self._order)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See `Sampler.load_state_dict`; raises DatasetError when the data have another size than at the checkpoint."""
        if state["size"] != len(self.replay):
            raise DatasetError(f"the checkpoint's epochs run over {state['size']} transitions, this dataset has {len(self.replay)}")
        self.rng.bit_generator.state = state["generator"]
        self._shuffle()
        self.epoch, self._position = state["epoch"], state["position"]
