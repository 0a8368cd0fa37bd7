"""What all samplers share: a batch size, one generator, and a state that resumes to the bit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from tensordict import TensorDict


class Sampler(ABC):
    """Draws batches with a generator of its own; equal seeds give equal batches.

    Args:
        batch_size: rows in `next_batch`.
        seed: seed of the generator (PCG64).
    """

    def __init__(self, batch_size: int, seed: int) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size {batch_size}, valid: 1 or more")
        self.batch_size = batch_size
        self.rng = np.random.default_rng(seed)

    @abstractmethod
    def sample(self, count: int) -> TensorDict:
        """`count` rows."""

    def next_batch(self) -> TensorDict:
        """The next `batch_size` rows."""
        return self.sample(self.batch_size)

    def state_dict(self) -> dict[str, Any]:
        """Generator and position, as JSON-able values."""
        return {"generator": self.rng.bit_generator.state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on exactly where `state_dict` was taken."""
        self.rng.bit_generator.state = state["generator"]
