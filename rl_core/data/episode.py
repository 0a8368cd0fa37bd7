"""Episode: one recorded run of a robot, in memory. All readers give it and all writers take it."""

from __future__ import annotations

import uuid as uuid_module
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import RobotContract
from rl_core.errors import ArmstackError


class DatasetError(ArmstackError):
    """A dataset that cannot be used; names the file, the field, what was found and what would be valid."""


@dataclass(frozen=True, kw_only=True)
class Episode:
    """T actions between T + 1 observations; `next_observation[t]` is `observations[t + 1]`, never across episodes.

    Attributes:
        observations: channel name -> (T + 1, ...).
        actions: (T, A) requested actions, policy values (see `Action`).
        rewards: (T,).
        terminal: the last step ended the task (no bootstrapping beyond it). A time limit is `truncated` instead.
        truncated: the episode was cut by a time limit or an operator.
        stamps_ns: (T + 1,) int64 time of each observation, nanoseconds.
        action_applied: (T, A) what the command filter let through, in the same numbers as `actions`; None where equal by construction.
        observation_age_ns: channel name -> (T + 1,) int64, how old the channel's sample was at the observation's stamp; channels whose
            age was not recorded are left out.
        success: task success, None where unknown.
        uuid: kept by merge and split.
        meta: JSON-able facts (seed, task, expert, gap counts, ...).
    """

    observations: Mapping[str, NDArray[Any]]
    actions: NDArray[np.float32]
    rewards: NDArray[np.float32]
    terminal: bool
    truncated: bool
    stamps_ns: NDArray[np.int64]
    action_applied: NDArray[np.float32] | None = None
    observation_age_ns: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    success: bool | None = None
    uuid: str = field(default_factory=lambda: uuid_module.uuid4().hex)
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        steps = len(self.actions)
        for name, values in self.observations.items():
            if len(values) != steps + 1:
                raise DatasetError(f"episode {self.uuid}: observation {name!r} has {len(values)} rows, valid: actions + 1 = {steps + 1}")
        for name, ages in self.observation_age_ns.items():
            if name not in self.observations or len(ages) != steps + 1:
                raise DatasetError(
                    f"episode {self.uuid}: observation_age_ns of {name!r} has {len(ages)} rows, valid: a channel, {steps + 1} rows"
                )
        for field_name, length in (("rewards", steps), ("stamps_ns", steps + 1), ("action_applied", steps)):
            values = getattr(self, field_name)
            if values is not None and len(values) != length:
                raise DatasetError(f"episode {self.uuid}: {field_name} has {len(values)} rows, valid: {length}")

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def episode_return(self) -> float:
        """Undiscounted sum of rewards."""
        return float(np.sum(self.rewards))

    def flat_observation(self, contract: RobotContract) -> NDArray[np.float32]:
        """(T + 1, contract.observation_size): low-dimensional channels in contract order (history 1).

        Raises:
            DatasetError: a channel is missing; lists both key sets.
        """
        needed = [channel.name for channel in contract.low_dimensional]
        missing = [name for name in needed if name not in self.observations]
        if missing:
            raise DatasetError(f"episode {self.uuid}: observation lacks {missing}; needed {needed}, found {sorted(self.observations)}")
        rows = [np.asarray(self.observations[name], dtype=np.float32).reshape(len(self) + 1, -1) for name in needed]
        return np.concatenate(rows, axis=1)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Episodes of one contract. Readers in `rl_core.data.formats` return it."""

    contract: RobotContract
    episodes: tuple[Episode, ...]
    source: str = ""

    def __len__(self) -> int:
        return len(self.episodes)

    @property
    def steps(self) -> int:
        """Number of transitions over all episodes."""
        return sum(len(episode) for episode in self.episodes)
