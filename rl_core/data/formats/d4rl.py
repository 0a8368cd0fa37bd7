"""D4RL's flat HDF5: one array a field over all episodes (Fu et al., "D4RL: Datasets for Deep Data-Driven Reinforcement Learning", 2020).

    observations (N, O)  actions (N, A)  rewards (N,)  terminals (N,)  timeouts (N,)  next_observations (N, O), optional

Ours adds what D4RL has no place for, but for images, and reads it back (see `rl_core.data.formats.d4rl_infos`).

Where episodes of other files end: at a terminal, at a timeout, at the end of the file. A file without `timeouts` but with
`next_observations` ends an episode where the next observation isn't the one of the following row. A file with neither has
ends at terminals only, and the transition at an unmarked reset cannot be told from a real one: this is said in a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Action, Channel, RobotContract
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.fingerprint import content_uuid
from rl_core.data.formats.base import require_numbers, require_writable
from rl_core.data.formats.d4rl_infos import read_infos, split_channels, write_infos
from rl_core.data.formats.endings import end_observations
from rl_core.data.formats.reader_notes import is_narrowed, say_inferred, say_narrowed
from rl_core.data.hdf5 import create_hdf5, is_hdf5, open_hdf5, read_array, read_numbers, read_text, top_level, write_array
from rl_core.data.training_data import terminal_flags

logger = logging.getLogger(__name__)

PERIOD_S = 0.05
"""Period assumed for files that don't state one (D4RL's don't); only stamps follow from it."""


class D4RLFormat:
    """See the module."""

    name = "d4rl"
    layout = "an HDF5 file with observations, actions, rewards, terminals"
    extensions: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    cannot_hold: Mapping[str, str] = {"pixels": "image channels are left out"}

    def check_contract(self, contract: RobotContract, path: Path) -> None:
        """Raises DatasetError for text channels, and where all channels are images."""
        require_numbers(contract, path)
        if not contract.low_dimensional:
            images = [channel.name for channel in contract.observation]
            raise DatasetError(f"{path}: no channel but the images {images}, for which D4RL has no place; valid: a channel of numbers")

    def matches(self, path: Path) -> bool:
        """An HDF5 file with `observations` and `actions` at its root."""
        return is_hdf5(path) and {"observations", "actions"} <= top_level(path)

    def read(self, path: Path) -> Dataset:
        """Reads all episodes.

        Raises:
            DatasetError: damaged, a field missing or of another length.
        """
        with open_hdf5(path) as file:
            fields = _read_fields(file)
            if "contract" in file.attrs:
                contract = RobotContract.from_json(read_text(file, "contract"))
                return Dataset(contract=contract, episodes=tuple(read_infos(file, fields, contract)), source=str(path))
            say_inferred(path, f"numbers get neutral names and no units; D4RL states no period: stamps assume {PERIOD_S} s")
            say_narrowed(path, [name for name in ("observations", "actions", "rewards") if is_narrowed(read_array(file, name))])
        contract = _neutral_contract(fields)
        ends = _ends(fields, path)
        found = (_episode(fields, contract, int(first), int(end)) for first, end in zip([0, *ends[:-1]], ends, strict=True))
        return Dataset(contract=contract, episodes=tuple(episode for episode in found if len(episode)), source=str(path))

    def write(self, dataset: Dataset, path: Path) -> None:
        """Writes all transitions; the last step of an episode that isn't terminal is a timeout.

        Raises:
            DatasetError: no episodes, one without a step or without a channel of the contract, or no channel but images.
        """
        require_writable(dataset, path)
        self.check_contract(dataset.contract, path)
        contract = dataset.contract.select(channel.name for channel in dataset.contract.low_dimensional)
        images = [channel.name for channel in dataset.contract.observation if channel not in contract.observation]
        if images:
            logger.warning("D4RL's layout has no place for %s; they are left out", images)
        episodes = dataset.episodes
        flat = [episode.flat_observation(contract) for episode in episodes]
        terminals = np.concatenate([terminal_flags(episode) for episode in episodes]).astype(bool)
        last = np.zeros(len(terminals), bool)
        last[np.cumsum([len(episode) for episode in episodes]) - 1] = True
        with create_hdf5(path) as file:
            write_array(file, "observations", np.concatenate([values[:-1] for values in flat]))
            write_array(file, "next_observations", np.concatenate([values[1:] for values in flat]))
            write_array(file, "actions", np.concatenate([episode.actions for episode in episodes]).astype(np.float32))
            write_array(file, "rewards", np.concatenate([episode.rewards for episode in episodes]).astype(np.float32))
            write_array(file, "terminals", terminals)
            write_array(file, "timeouts", last & ~terminals)
            write_infos(file, episodes, contract)


def _read_fields(file: h5py.File) -> dict[str, NDArray[Any]]:
    actions = read_array(file, "actions")
    observations = read_array(file, "observations")
    if actions.ndim != 2 or observations.ndim != 2 or not len(actions):
        raise DatasetError(f"{file.filename}: observations {observations.shape}, actions {actions.shape}; valid: (N, size), N above 0")
    count = len(actions)
    fields: dict[str, NDArray[Any]] = {
        "observations": read_numbers(file, "observations", rows=count, columns=observations.shape[1]),
        "actions": actions.astype(np.float32),
        "rewards": read_numbers(file, "rewards", rows=count),
        "terminals": read_numbers(file, "terminals", rows=count).astype(bool),
    }
    if "timeouts" in file:
        fields["timeouts"] = read_numbers(file, "timeouts", rows=count).astype(bool)
    if "next_observations" in file:
        fields["next_observations"] = read_numbers(file, "next_observations", rows=count, columns=observations.shape[1])
    return fields


def _ends(fields: dict[str, NDArray[Any]], path: Path) -> NDArray[np.int64]:
    """Index behind the last row of each episode, by the rules in the module's description."""
    ends = fields["terminals"].copy()
    if "timeouts" in fields:
        ends |= fields["timeouts"]
    elif "next_observations" in fields:
        jumps = (fields["next_observations"][:-1] != fields["observations"][1:]).any(axis=1)
        ends[:-1] |= jumps
        logger.warning("%s: no timeouts; %d episodes end where next_observations[t] isn't observations[t + 1]", path, int(jumps.sum()))
    else:
        logger.warning("%s: no timeouts and no next_observations; episodes end at terminals only, resets elsewhere can't be seen", path)
    ends[-1] = True
    return np.flatnonzero(ends) + 1


def _episode(fields: dict[str, NDArray[Any]], contract: RobotContract, first: int, end: int) -> Episode:
    rows = slice(first, end)
    terminal = bool(fields["terminals"][end - 1])
    following = {"": fields["next_observations"][end - 1 : end]} if "next_observations" in fields else None
    observations, kept = end_observations({"": fields["observations"][rows]}, following, terminal=terminal)
    channels = split_channels(observations[""], contract)
    return Episode(
        observations=channels,
        actions=fields["actions"][rows][:kept],
        rewards=fields["rewards"][rows][:kept],
        terminal=terminal,
        truncated=not terminal,
        stamps_ns=np.arange(kept + 1, dtype=np.int64) * round(contract.action.period_s * 1e9),
        uuid=content_uuid(fields["actions"][rows], channels),
    )


def _neutral_contract(fields: dict[str, NDArray[Any]]) -> RobotContract:
    observation = Channel(name="observation", names=tuple(f"observation_{i}" for i in range(fields["observations"].shape[1])))
    size = fields["actions"].shape[1]
    action = Action(
        names=tuple(f"action_{i}" for i in range(size)), meaning="absolute", space="joint", scale=(1.0,) * size, units=("1",) * size,
        frame="", period_s=PERIOD_S,
    )  # fmt: skip
    return RobotContract(robot="unknown", observation=(observation,), action=action)
