"""Windows for a policy with a context and action chunks: what was seen up to now, and the actions from now on.

    step t:  observations t - context + 1 .. t   ->   actions t .. t + chunk - 1

A window never crosses the cut of a retrieved piece. Such a piece brings the frames around the cut along (`rl_core.strap.selection`), so
that every frame that was matched has a whole window, and nothing is padded. A whole demonstration is padded at its own ends, as at run
time: its first observation is repeated before it, and actions beyond its end have mask 0.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict

from rl_core.contract import RobotContract
from rl_core.data.annotations import LANG, RETRIEVED
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.samplers import Sampler
from rl_core.data.samplers.windows import choose
from rl_core.data.training_data import require_trainable, terminal_flags, training_actions
from rl_core.data.weights import episode_weights
from rl_core.training.seeding import derive_seed


def is_piece(episode: Episode) -> bool:
    """Whether the episode was cut out of a longer one, with the frames around the cut."""
    return RETRIEVED in episode.meta


def instruction_of(episode: Episode) -> str:
    """The task of the episode in words, empty where its meta has none."""
    return str(episode.meta.get(LANG, ""))


def instructions_in(dataset: Dataset) -> tuple[str, ...]:
    """All instructions of the dataset, sorted."""
    return tuple(sorted({instruction_of(episode) for episode in dataset.episodes}))


class ChunkSampler(Sampler):
    """Windows of all episodes, each equally likely (times its episode's weight), drawn with replacement.

    A batch has `observation` (B, context, O), each image channel under its name (B, context, H, W, C), `action` (B, chunk, A), `mask`
    and `terminal` (B, chunk), and `instruction` (B,), the index into `instructions_in(dataset)`.

    Args:
        dataset: what is trained on.
        contract: the policy's observation channels.
        context: observations in a window.
        chunk: actions in a window.
        batch_size: windows in `next_batch`.
        seed: seed of the generator.
        weights: episode uuid -> weight.

    Raises:
        DatasetError: data that cannot be trained on, or no whole window.
    """

    def __init__(
        self,
        dataset: Dataset,
        contract: RobotContract,
        *,
        context: int,
        chunk: int,
        batch_size: int,
        seed: int,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(batch_size, seed)
        require_trainable(dataset)
        self.context, self.chunk = context, chunk
        episodes = dataset.episodes
        self._steps = np.array([len(episode) for episode in episodes])
        numbers = bool(contract.low_dimensional)  # else the policy sees pictures alone
        self._observations = [e.flat_observation(contract) if numbers else np.zeros((len(e) + 1, 0), np.float32) for e in episodes]
        self._actions = training_actions(dataset)
        self._terminal = [terminal_flags(episode) for episode in episodes]
        self._images = {
            channel.name: [episode.observations[channel.name] for episode in episodes]
            for channel in contract.observation
            if channel.kind == "image"
        }
        texts = instructions_in(dataset)
        self._instruction = np.array([texts.index(instruction_of(episode)) for episode in episodes])
        windows = [self._present(episode) for episode in episodes]
        self._episode = np.repeat(np.arange(len(episodes)), [len(steps) for steps in windows])
        self._step = np.concatenate(windows)
        self._shares = episode_weights(dataset, weights)[self._episode]
        if not self._shares.any():
            raise DatasetError(
                f"dataset {dataset.source or '(in memory)'}: no window of {context} observations and {chunk} actions in {len(episodes)} "
                f"episodes, the longest of {self._steps.max()} steps; valid: retrieved pieces of {context + chunk - 1} steps or more"
            )

    def _present(self, episode: Episode) -> NDArray[np.int64]:
        """Steps that may be the present one."""
        if is_piece(episode):
            return np.arange(self.context - 1, len(episode) - self.chunk + 1)
        return np.arange(len(episode))

    def __len__(self) -> int:
        """Windows there are."""
        return len(self._step)

    def sample(self, count: int) -> TensorDict:
        """See `Sampler.sample`."""
        return self.gather(choose(self.rng, self._shares, count))

    def gather(self, windows: NDArray[np.int64]) -> TensorDict:
        """The windows of these numbers, 0 .. len - 1, in the order of episodes and steps."""
        episodes, steps = self._episode[windows], self._step[windows]
        seen = np.maximum(steps[:, None] + np.arange(1 - self.context, 1), 0)
        due = steps[:, None] + np.arange(self.chunk)
        inside = np.minimum(due, self._steps[episodes][:, None] - 1)
        rows = list(zip(episodes, seen, inside, strict=True))
        arrays = {
            "observation": np.stack([self._observations[e][past] for e, past, _ in rows]),
            "action": np.stack([self._actions[e][ahead] for e, _, ahead in rows]),
            "terminal": np.stack([self._terminal[e][ahead] for e, _, ahead in rows]),
            "mask": (due == inside).astype(np.float32),
            "instruction": self._instruction[episodes],
        }
        arrays |= {name: np.stack([frames[e][past] for e, past, _ in rows]) for name, frames in self._images.items()}
        return TensorDict({name: torch.from_numpy(values) for name, values in arrays.items()}, batch_size=[len(rows)])


def chunk_source(
    dataset: Dataset,
    contract: RobotContract,
    batch_size: int,
    *,
    seed: int,
    weights: Mapping[str, float] | None = None,
    context: int,
    chunk: int,
) -> ChunkSampler:
    """The source of methods with a context and chunks."""
    sampler_seed = derive_seed(seed, "sampler")
    return ChunkSampler(dataset, contract, context=context, chunk=chunk, batch_size=batch_size, seed=sampler_seed, weights=weights)
