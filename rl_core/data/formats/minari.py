"""Minari's folders (https://minari.farama.org/content/dataset_standards/), read and written by the library `minari`.

    FOLDER/data/metadata.json       spaces, totals, dataset_id; ours adds `armstack`: {format_version, contract}
    FOLDER/data/main_data.hdf5      episode_K/ observations/CHANNEL (T + 1, ...), actions (T, A), rewards, terminations, truncations (T,)
                                    infos/ ours: stamps_ns (T + 1,), success (T + 1,), action_applied (T, A), age_ns/CHANNEL (T + 1,)
                                    attrs: id, total_steps, seed; ours adds uuid, meta (JSON)

`minari.load_dataset(FOLDER's name)` finds it where MINARI_DATASETS_PATH is FOLDER's parent and the name is an id, `lift-v0`. Images
are PNG where the library itself writes JPEG: it decodes both, and PNG gives every pixel back.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rl_core.contract import Channel, RobotContract
from rl_core.data.damage import describe
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.formats.base import require_library, require_plain_names, require_writable
from rl_core.data.formats.minari_foreign import read_foreign
from rl_core.data.staging import staged

FORMAT_VERSION = 1
OURS = "armstack"
"""Key of the metadata under which lies what only this package reads."""


class MinariFormat:
    """See the module."""

    name = "minari"
    layout = "a folder with data/metadata.json"
    extensions: tuple[str, ...] = ()
    entries: tuple[str, ...] = ("data",)
    cannot_hold: Mapping[str, str] = {}

    def check_contract(self, contract: RobotContract, path: Path) -> None:
        """Raises DatasetError for text channels, and for names with a '/'."""
        require_plain_names(contract, path, "Minari")

    def matches(self, path: Path) -> bool:
        """A folder with Minari's metadata."""
        return (path / "data" / "metadata.json").is_file()

    def read(self, path: Path) -> Dataset:
        """Reads all episodes; no environment is made and nothing is fetched.

        Raises:
            DatasetError: damaged, a version this code does not know, or spaces that have no place in a contract.
        """
        require_library(self.name, "minari")
        from minari.dataset.minari_storage import MinariStorage

        where = path / "data"
        try:
            metadata = MinariStorage.read_raw_metadata(where)
            # without them the library would make the environment to ask it
            missing = {"observation_space", "action_space", "total_episodes"} - set(metadata)
            if missing:
                raise DatasetError(f"{where}/metadata.json: {sorted(missing)} missing; found {sorted(metadata)}")
            storage = MinariStorage.read(where)
            indices = range(metadata["total_episodes"])
            episodes = list(zip(storage.get_episodes(indices), storage.get_episode_metadata(indices), strict=True))
            if OURS not in metadata:
                return read_foreign(storage, episodes, path)
            contract = _read_contract(metadata[OURS], where)
            return Dataset(contract=contract, episodes=tuple(_episode(*each, contract) for each in episodes), source=str(path))
        except DatasetError as error:
            raise error if str(path) in str(error) else DatasetError(f"{path}: {error}") from error
        except Exception as error:  # the library checks little: whatever it stumbles over is a damaged file
            raise DatasetError(f"{where}: truncated, damaged or no Minari dataset: {describe(error)}") from error

    def write(self, dataset: Dataset, path: Path) -> None:
        """Writes all episodes; an older Minari dataset is replaced.

        Raises:
            DatasetError: `path` is something else, an episode cannot be written, or a channel's name has a '/'.
        """
        require_library(self.name, "minari")
        import minari
        from minari.dataset.minari_storage import MinariStorage

        require_writable(dataset, path)
        contract, path = dataset.contract, path.resolve()
        self.check_contract(dataset.contract, path)
        if path.exists() and not self.matches(path):
            raise DatasetError(f"{path}: is no Minari dataset; valid: a new folder, or an older dataset to replace")
        with staged(path) as part:
            part.mkdir()
            storage = MinariStorage.new(part / "data", _observation_space(contract), _action_space(dataset))
            name = path.name
            storage.update_metadata({
                "dataset_id": name if re.fullmatch(r"[-\w]+-v\d+", name) else re.sub(r"[^-\w]", "_", name) + "-v0",
                "minari_version": minari.__version__,
                OURS: {"format_version": FORMAT_VERSION, "contract": json.loads(contract.to_json())},
            })  # fmt: skip
            storage.update_episodes(_buffer(episode, contract) for episode in dataset.episodes)
            _add_facts_and_bytes(part / "data" / "main_data.hdf5", dataset)


def _is_bytes(channel: Channel) -> bool:
    """Whether the library would store this channel as JPEG pictures, pictures or not."""
    return channel.dtype == "uint8"


def _is_picture(channel: Channel) -> bool:
    """Whether the library expects encoded pictures: its `is_image_space`."""
    return channel.kind == "image" and min(channel.shape[:2]) >= 32


def _observation_space(contract: RobotContract) -> Any:
    from gymnasium.spaces import Box, Dict

    boxes: dict[str, Any] = {}
    for channel in contract.observation:
        dtype = np.dtype(channel.dtype)
        low, high = (-np.inf, np.inf) if dtype.kind == "f" else (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        # the decoder of a picture with one channel gives (H, W)
        shape = channel.shape[:2] if _is_picture(channel) and channel.encoding == "mono8" else channel.shape
        boxes[channel.name] = Box(low=low, high=high, shape=shape, dtype=dtype.type)
    return Dict(boxes)


def _action_space(dataset: Dataset) -> Any:
    """[-1, 1], where policy values lie, widened to hold every action there is."""
    from gymnasium.spaces import Box

    low, high = np.full(dataset.contract.action.size, -1, np.float32), np.full(dataset.contract.action.size, 1, np.float32)
    for episode in dataset.episodes:
        low, high = np.fmin(low, np.fmin.reduce(episode.actions)), np.fmax(high, np.fmax.reduce(episode.actions))
    return Box(low=low, high=high, dtype=np.float32)


def _buffer(episode: Episode, contract: RobotContract) -> Any:
    """What the library writes of an episode: all but its bytes."""
    from minari.data_collector import EpisodeBuffer

    steps = len(episode)
    numbers = {c.name: np.asarray(episode.observations[c.name]).astype(c.dtype) for c in contract.observation if not _is_bytes(c)}
    infos: dict[str, Any] = {"stamps_ns": np.asarray(episode.stamps_ns, np.int64)}
    if episode.success is not None:
        infos["success"] = _at_the_end(steps + 1, episode.success)
    if episode.action_applied is not None:
        infos["action_applied"] = np.asarray(episode.action_applied, np.float32)
    if episode.observation_age_ns:
        infos["age_ns"] = {name: np.asarray(ages, np.int64) for name, ages in episode.observation_age_ns.items()}
    seed = episode.meta.get("seed")
    return EpisodeBuffer(
        seed=seed if isinstance(seed, int) and 0 <= seed < 2**63 else None,
        observations=numbers,
        actions=np.asarray(episode.actions, np.float32),  # type: ignore[arg-type]
        rewards=np.asarray(episode.rewards, np.float32),  # type: ignore[arg-type]
        terminations=_at_the_end(steps, episode.terminal),  # type: ignore[arg-type]
        truncations=_at_the_end(steps, episode.truncated),  # type: ignore[arg-type]
        infos=infos,
    )


def _at_the_end(length: int, value: bool) -> NDArray[np.bool_]:
    flags = np.zeros(length, bool)
    flags[-1] = value
    return flags


def _add_facts_and_bytes(file: Path, dataset: Dataset) -> None:
    with h5py.File(file, "a") as opened:
        for index, episode in enumerate(dataset.episodes):
            group = opened[f"episode_{index}"]
            group.attrs["uuid"] = episode.uuid
            group.attrs["meta"] = json.dumps(dict(episode.meta), sort_keys=True)
            for channel in dataset.contract.observation:
                if _is_bytes(channel):
                    values = np.asarray(episode.observations[channel.name]).astype(np.uint8)
                    _write_bytes(group.require_group("observations"), channel, values)


def _write_bytes(group: h5py.Group, channel: Channel, values: NDArray[np.uint8]) -> None:
    if not _is_picture(channel):
        group.create_dataset(channel.name, data=values, chunks=True, maxshape=(None, *channel.shape))
        return
    pictures = group.create_dataset(channel.name, (len(values),), dtype=h5py.vlen_dtype(np.uint8))
    for row, picture in enumerate(values[..., 0] if channel.encoding == "mono8" else values):
        buffer = io.BytesIO()
        Image.fromarray(picture).save(buffer, format="PNG", compress_level=1)
        pictures[row] = np.frombuffer(buffer.getvalue(), np.uint8)


def _read_contract(ours: Any, where: Path) -> RobotContract:
    version = ours.get("format_version")
    if version != FORMAT_VERSION:
        raise DatasetError(f"{where}/metadata.json: {OURS} format_version {version!r}; this Armstack reads version {FORMAT_VERSION}")
    return RobotContract.from_json(json.dumps(ours["contract"]))


def _episode(data: dict[str, Any], attributes: dict[str, Any], contract: RobotContract) -> Episode:
    infos = data["infos"]
    rows = len(data["rewards"]) + 1
    observations = {}
    for channel in contract.observation:
        values = data["observations"][channel.name]
        observations[channel.name] = np.asarray(values).reshape(rows, *channel.shape).astype(channel.dtype, copy=False)
    return Episode(
        observations=observations,
        actions=data["actions"].reshape(-1, contract.action.size),
        rewards=data["rewards"],
        terminal=bool(data["terminations"][-1]),
        truncated=bool(data["truncations"][-1]),
        stamps_ns=infos["stamps_ns"],
        action_applied=infos.get("action_applied"),
        observation_age_ns=dict(_in_order(infos.get("age_ns", {}), contract)),
        success=bool(infos["success"][-1]) if "success" in infos else None,
        uuid=str(attributes["uuid"]),
        meta=json.loads(attributes["meta"]),
    )


def _in_order(ages: dict[str, NDArray[np.int64]], contract: RobotContract) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """HDF5 lists names by the alphabet; the contract's order is the one to keep."""
    yield from ((channel.name, ages[channel.name]) for channel in contract.observation if channel.name in ages)
