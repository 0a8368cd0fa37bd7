"""Windows of k steps inside an episode, and whole rollouts."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict

from rl_core.data.episode import DatasetError
from rl_core.data.episode_replay import EpisodeReplay
from rl_core.data.samplers.base import Sampler


class WindowSampler(Sampler):
    """Windows of `length` consecutive steps of one episode, every window equally likely (times its episode's weight).

    A batch has the keys of a transition with a time axis, (B, length, ...), and `mask` (B, length), 1 inside the episode.
    Padding rule: with `pad_before` = p a window may start up to p steps before the episode, with `pad_after` = q end up to q
    steps behind it; steps outside repeat the first or the last step of the episode and have mask 0.

    Args:
        replay: the episodes; may grow meanwhile.
        length: steps in a window.
        batch_size: windows in `next_batch`.
        seed: seed of the generator.
        pad_before: largest number of padded steps before, below `length`.
        pad_after: largest number of padded steps behind, below `length`.
    """

    def __init__(self, replay: EpisodeReplay, *, length: int, batch_size: int, seed: int, pad_before: int = 0, pad_after: int = 0) -> None:
        super().__init__(batch_size, seed)
        if length < 1 or not (0 <= pad_before < length and 0 <= pad_after < length):
            raise ValueError(f"length {length}, pad_before {pad_before}, pad_after {pad_after}; valid: length >= 1, pads in 0..length - 1")
        self.replay, self.length, self.pad_before, self.pad_after = replay, length, pad_before, pad_after

    def sample(self, count: int) -> TensorDict:
        """See `Sampler.sample`; raises DatasetError when every episode is too short."""
        with self.replay.lock:
            first, steps, weight = self.replay.spans()
            windows = np.maximum(steps + self.pad_before + self.pad_after - self.length + 1, 0)
            if not (windows * weight).any():
                raise DatasetError(f"no window of {self.length} steps: the longest of {len(steps)} episodes has {steps.max()}")
            chosen = choose(self.rng, windows * weight, count)
            offsets = self.rng.integers(0, windows[chosen]) - self.pad_before
            return gather_windows(self.replay, first[chosen], steps[chosen], offsets, self.length)


class RolloutSampler(Sampler):
    """Whole episodes, drawn in proportion to their weights; shorter ones are padded to the longest of the batch, `mask` 0.

    A batch has the keys of `WindowSampler` and `length` (B,), the steps of each episode.
    """

    def __init__(self, replay: EpisodeReplay, *, batch_size: int, seed: int) -> None:
        super().__init__(batch_size, seed)
        self.replay = replay

    def sample(self, count: int) -> TensorDict:
        """See `Sampler.sample`."""
        with self.replay.lock:
            first, steps, weight = self.replay.spans()
            chosen = choose(self.rng, weight, count)
            longest = int(steps[chosen].max())
            batch = gather_windows(self.replay, first[chosen], steps[chosen], np.zeros(count, np.int64), longest)
        batch["length"] = torch.from_numpy(steps[chosen])
        return batch


def choose(rng: np.random.Generator, shares: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """(count,) indices drawn independently in proportion to `shares`."""
    cumulative = np.cumsum(shares)
    return np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")


def gather_windows(
    replay: EpisodeReplay, first: NDArray[np.int64], steps: NDArray[np.int64], offsets: NDArray[np.int64], length: int
) -> TensorDict:
    """Windows (B, length, ...) that begin at step `offsets` of the episodes with rows `first`.. and `steps` actions."""
    if (offsets >= 0).all() and (offsets + length <= steps).all():  # nothing to pad: the next observation is one row further
        longer = replay.gather_columns((first + offsets)[:, None] + np.arange(length + 1))
        values = {name: column[:, :-1] for name, column in longer.items()}
        values["next_observation"] = longer["observation"][:, 1:].clone()
        values["mask"] = torch.ones(len(first), length)
        return TensorDict(values, batch_size=[len(first)])
    times = offsets[:, None] + np.arange(length)
    inside = np.clip(times, 0, steps[:, None] - 1)
    values = replay.gather_columns(first[:, None] + inside)
    values["next_observation"] = replay.gather_columns(first[:, None] + inside + 1)["observation"]
    values["mask"] = torch.from_numpy((times == inside).astype(np.float32))
    return TensorDict(values, batch_size=[len(first)])
