"""What a dataset format is, and what there is to hold."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset, DatasetError

FIELDS: Mapping[str, str] = {
    "contract": "names, units, frames and scales of every number",
    "uuid": "each episode's uuid",
    "stamps": "int64 nanosecond stamps as they were",
    "last_observation": "the observation after the last action",
    "rewards": "per-step rewards",
    "endings": "terminal and truncated, told apart",
    "success": "success, failure or unknown",
    "action_applied": "what the command filter let through",
    "observation_age": "the age of every channel's sample",
    "meta": "facts of each episode",
    "pixels": "images to the bit",
    "precision": "numbers in their own type",
}
"""All that a dataset may hold. A format names those that it cannot hold."""


class Format(Protocol):
    """Reads and writes one layout on disk."""

    @property
    def name(self) -> str:
        """What `write_dataset` and `armstack convert --format` call it."""
        ...

    @property
    def layout(self) -> str:
        """One line that says by what it is recognised."""
        ...

    @property
    def extensions(self) -> tuple[str, ...]:
        """Endings by which this writer is chosen, e.g. `.hdf5`, "" for a folder; none for what is asked for by name only."""
        ...

    @property
    def entries(self) -> tuple[str, ...]:
        """Patterns of the names that a folder of this format has at its top; empty for files."""
        ...

    @property
    def cannot_hold(self) -> Mapping[str, str]:
        """Names of `FIELDS` -> what becomes of them when written. All others come back equal."""
        ...

    def check_contract(self, contract: RobotContract, path: Path) -> None:
        """Raises DatasetError, about `path`, where no dataset of this contract can be written, whatever may be lost."""
        ...

    def matches(self, path: Path) -> bool:
        """Whether `path`, which exists, has this layout; decided by content, never raises."""
        ...

    def read(self, path: Path) -> Dataset:
        """Reads all episodes; raises DatasetError on anything damaged or missing."""
        ...

    def write(self, dataset: Dataset, path: Path) -> None:
        """Writes all episodes; `path` appears whole or not at all."""
        ...


def require_library(format: str, module: str) -> None:
    """Checks that the library which `format` is read and written with is installed.

    Raises:
        DatasetError: it isn't; says how to get it.
    """
    if importlib.util.find_spec(module) is None:
        raise DatasetError(f"{format} datasets need {module}, which is not installed: pip install 'armstack[formats]'")


def losses(format: Format, dataset: Dataset) -> dict[str, str]:
    """What of `dataset` would be lost in `format`: those fields it cannot hold that the dataset makes use of, and what becomes of them."""
    used = used_fields(dataset)
    return {name: text for name, text in format.cannot_hold.items() if name in used}


def used_fields(dataset: Dataset) -> frozenset[str]:
    """The names of `FIELDS` that say something in this dataset; zeros for rewards, say, can be lost without a loss."""
    episodes = dataset.episodes
    optional = {
        "rewards": any(np.any(episode.rewards) for episode in episodes),
        "success": any(episode.success is not None for episode in episodes),
        "action_applied": any(episode.action_applied is not None for episode in episodes),
        "observation_age": any(episode.observation_age_ns for episode in episodes),
        "meta": any(episode.meta for episode in episodes),
        "pixels": any(channel.kind == "image" for channel in dataset.contract.observation),
        "precision": any(channel.dtype not in ("float32", "uint8") for channel in dataset.contract.observation),
    }
    return frozenset(name for name in FIELDS if optional.get(name, True))


def require_numbers(contract: RobotContract, path: Path) -> None:
    """Checks that the observation is numbers and images.

    Raises:
        DatasetError: a text channel, for which no format has a place.
    """
    text = [channel.name for channel in contract.observation if channel.kind == "text"]
    if text:
        raise DatasetError(f"{path}: channels {text} are text; valid in an observation: numbers and images")


def require_plain_names(contract: RobotContract, path: Path, layout: str) -> None:
    """`require_numbers`, and that no channel's name has a '/', which is where names of files and of columns are taken apart."""
    require_numbers(contract, path)
    slashes = [channel.name for channel in contract.observation if "/" in channel.name]
    if slashes:
        raise DatasetError(f"{path}: channels {slashes}; valid in {layout}'s layout: names without '/'")


def require_writable(dataset: Dataset, path: Path) -> None:
    """Checks what no file can hold, before one is begun.

    Raises:
        DatasetError: no episodes, an episode without a step or without a channel of the contract, a text channel, meta beyond JSON.
    """
    if not dataset.episodes:
        raise DatasetError(f"{path}: the dataset to be written has no episodes; valid: 1 or more")
    require_numbers(dataset.contract, path)
    for episode in dataset.episodes:
        missing = [channel.name for channel in dataset.contract.observation if channel.name not in episode.observations]
        if missing or not len(episode):
            found = f"{len(episode)} steps, channels {missing} missing"
            raise DatasetError(f"{path}: episode {episode.uuid}: {found}; valid: 1 step or more, all channels")
        try:
            json.dumps(dict(episode.meta))
        except (TypeError, ValueError) as error:
            raise DatasetError(f"{path}: episode {episode.uuid}: meta {error}; valid: what JSON can hold") from error
