"""EpisodeReplay: whole episodes in a ring of packed rows, for samplers that need to know where an episode ends."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tensordict import TensorDict
from torch import Tensor

from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.replay import ReplayBuffer
from rl_core.data.training_data import require_trainable, terminal_flags, training_actions
from rl_core.data.weights import episode_weights


@dataclass(frozen=True, kw_only=True)
class _Span:
    """Where an episode lies: its first row counted from the first row ever added, and its number of actions."""

    first: int
    steps: int
    weight: float


class EpisodeReplay:
    """Episodes as T + 1 rows (one an observation; the last row's action and reward are 0); whole episodes are overwritten.

    Args:
        capacity: rows kept, T + 1 an episode.
        columns: column name -> width; `observation`, `action`, `reward` and any further ones.
    """

    def __init__(self, capacity: int, columns: Mapping[str, int]) -> None:
        reserved = {"terminal", "last", "next_observation"} & columns.keys()
        if reserved:
            raise DatasetError(f"columns {sorted(reserved)} are made by EpisodeReplay; give the others only")
        self._ring = ReplayBuffer(capacity, {**columns, "terminal": 1, "last": 0})
        self._spans: deque[_Span] = deque()
        self._arrays: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]] | None = None
        self.lock = threading.RLock()
        """Held by samplers from choosing rows to gathering them, and by writers while they add."""

    @classmethod
    def from_dataset(cls, dataset: Dataset, contract: RobotContract, *, weights: Mapping[str, float] | None = None) -> EpisodeReplay:
        """All episodes of `dataset`; `weights` {uuid: weight} makes an episode more or less likely to be drawn.

        Raises:
            DatasetError: data that cannot be trained on, or an episode without a weight.
        """
        require_trainable(dataset)
        episodes = [episode for episode in dataset.episodes if len(episode)]
        columns = {"observation": contract.observation_size, "action": contract.action.size, "reward": 1}
        replay = cls(sum(len(episode) + 1 for episode in episodes), columns)
        shares = dict(zip((e.uuid for e in dataset.episodes), episode_weights(dataset, weights), strict=True))
        actions = dict(zip((e.uuid for e in dataset.episodes), training_actions(dataset), strict=True))
        for episode in episodes:
            values = {"observation": episode.flat_observation(contract), "action": actions[episode.uuid], "reward": episode.rewards}
            replay.add_episode(values, terminal=bool(terminal_flags(episode)[-1]), weight=float(shares[episode.uuid]))
        return replay

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that were declared."""
        return tuple(name for name in self._ring.columns.widths if name not in ("terminal", "last"))

    def __len__(self) -> int:
        """Episodes held."""
        return len(self._spans)

    def add_episode(self, values: Mapping[str, ArrayLike], *, terminal: bool, weight: float = 1.0) -> None:
        """Adds an episode of T steps: `observation` (T + 1, width); every other column (T, ...) or (T + 1, ...).

        Raises:
            DatasetError: a column is missing or has another length, no step, or more rows than the capacity.
        """
        arrays = {name: np.asarray(value, np.float32) for name, value in values.items()}
        steps = len(arrays.get("observation", ())) - 1
        if not 1 <= steps < self._ring.capacity:
            raise DatasetError(f"episode of {steps} steps; valid: 1..{self._ring.capacity - 1}, one observation more than actions")
        rows: dict[str, NDArray[np.float32]] = {}
        for name, array in arrays.items():
            if len(array) not in (steps, steps + 1):
                raise DatasetError(f"column {name!r} has {len(array)} rows, valid: {steps} or {steps + 1}")
            rows[name] = array if len(array) == steps + 1 else np.concatenate([array, np.zeros_like(array[:1])])
        flags = np.arange(steps + 1)
        rows["terminal"] = ((flags == steps - 1) & terminal).astype(np.float32)
        rows["last"] = (flags == steps).astype(np.float32)
        with self.lock:
            first = self._ring.added
            self._ring.extend(rows)
            self._arrays = None
            self._spans.append(_Span(first=first, steps=steps, weight=weight))
            while self._spans[0].first < self._ring.added - self._ring.capacity:
                self._spans.popleft()

    def spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """(first row, steps, weight) of each episode, not to be changed; hold `lock` from here to `gather`.

        Raises:
            DatasetError: no episode yet.
        """
        if not self._spans:
            raise DatasetError("no episodes; add one before sampling")
        if self._arrays is None:
            self._arrays = (
                np.array([span.first for span in self._spans]),
                np.array([span.steps for span in self._spans]),
                np.array([span.weight for span in self._spans]),
            )
        return self._arrays

    def gather(self, rows: NDArray[np.int64]) -> TensorDict:
        """The declared columns and `terminal` at `rows` (any shape), counted from the first row ever added."""
        return TensorDict(self.gather_columns(rows), batch_size=rows.shape)

    def gather_columns(self, rows: NDArray[np.int64]) -> dict[str, Tensor]:
        """What `gather` returns, as a plain dict."""
        ring = self._ring
        columns = ring.gather_columns(rows % ring.capacity if ring.added > ring.capacity else rows)
        del columns["last"]
        return columns

    def save(self, folder: str | Path) -> Path:
        """Appends what was added since the last save (see `ReplayBuffer.save`)."""
        with self.lock:
            return self._ring.save(folder)

    @classmethod
    def load(cls, folder: str | Path, *, added: int | None = None) -> EpisodeReplay:
        """Reads what `save` wrote (see `ReplayBuffer.load`); episode weights are 1."""
        ring = ReplayBuffer.load(folder, added=added)
        replay = cls(1, {name: width for name, width in ring.columns.widths.items() if name not in ("terminal", "last")})
        replay._ring = ring
        oldest = max(ring.added - ring.capacity, 0)
        last_column = ring.columns.slices["last"].start
        rows = np.arange(oldest, ring.added)
        ends = rows[ring.rows[rows % ring.capacity, last_column] > 0]
        # the rows before the first end belong to an episode whose start may have been overwritten, unless nothing was yet
        starts = np.concatenate([[0], ends[:-1] + 1]) if oldest == 0 else ends[:-1] + 1
        for first, end in zip(starts, ends if oldest == 0 else ends[1:], strict=True):
            replay._spans.append(_Span(first=int(first), steps=int(end - first), weight=1.0))
        return replay

    def state_dict(self) -> dict[str, int]:
        """Rows ever added; give it to `load`."""
        return self._ring.state_dict()
