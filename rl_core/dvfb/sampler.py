"""Transitions together with the state one step after their next one, which the goal variant `pair_compat` looks at."""

from __future__ import annotations

import torch
from tensordict import TensorDict

from rl_core.data.episode import DatasetError
from rl_core.data.replay import ReplayBuffer
from rl_core.data.samplers import Sampler


class LaterSampler(Sampler):
    """Uniform transitions with `later_observation` (B, S): s'' where the episode goes on, s' where it ends.

    Args:
        replay: rows of `stride` worlds stepped in turn; may grow meanwhile.
        stride: rows from one transition of a world to its next.
        batch_size: rows in `next_batch`.
        seed: seed of the generator.
    """

    def __init__(self, replay: ReplayBuffer, *, stride: int, batch_size: int, seed: int) -> None:
        super().__init__(batch_size, seed)
        self.replay, self.stride = replay, stride

    def sample(self, count: int) -> TensorDict:
        """See `Sampler.sample`; raises DatasetError while the replay is empty."""
        size = len(self.replay)
        if not size:
            raise DatasetError("the replay buffer is empty; add transitions before sampling")
        rows = self.rng.integers(0, size, count)
        batch, after = self.replay.gather(rows), self.replay.gather((rows + self.stride) % size)
        goes_on = (after["observation"] == batch["next_observation"]).all(-1, keepdim=True)  # whatever lies between two episodes, or rounds
        batch["later_observation"] = torch.where(goes_on, after["next_observation"], batch["next_observation"])
        return batch
