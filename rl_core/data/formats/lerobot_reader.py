"""Reads a LeRobotDataset v3.0 folder; see `rl_core.data.formats.lerobot` for its layout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.formats import lerobot_layout as layout
from rl_core.data.formats.lerobot_tables import column, from_file, read_table, reading
from rl_core.data.formats.lerobot_video import decode

Columns = dict[str, NDArray[Any]]
Rows = Sequence[dict[str, Any]]


def read_info(root: Path) -> dict[str, Any]:
    """info.json of the folder `root`.

    Raises:
        DatasetError: damaged, a field missing, or another version of the layout.
    """
    path = root / layout.INFO
    with reading(path):
        info = json.loads(path.read_text(encoding="utf-8"))
        version = str(info["codebase_version"])
        if not version.startswith("v3."):
            raise DatasetError(
                f"{path}: LeRobot's layout {version}, valid: v3.x; LeRobot's convert_dataset_v21_to_v30 makes a v3.0 dataset of a v2.1 one"
            )
        if not info["fps"] > 0 or not all(isinstance(info["features"][key]["dtype"], str) for key in info["features"]):
            raise DatasetError(f"{path}: fps {info['fps']}, features {info['features']}; valid: fps above 0, a dtype for each feature")
        return info


def read_episode_rows(root: Path, info: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of meta/episodes without statistics, in the order of the episodes; raises DatasetError where one is missing."""
    rows = []
    for path in sorted((root / "meta" / "episodes").glob("*/*.parquet")):
        table = read_table(path)
        with reading(path):
            rows += table.select([name for name in table.column_names if not name.startswith("stats/")]).to_pylist()
    with reading(root / "meta" / "episodes"):
        rows.sort(key=lambda row: row["episode_index"])
        if not rows or [row["episode_index"] for row in rows] != list(range(info["total_episodes"])):
            raise DatasetError(
                f"{root}/meta/episodes has {len(rows)} episodes, {layout.INFO} says {info['total_episodes']}; a file may be missing"
            )
    return rows


def read_numbers(root: Path, info: dict[str, Any], rows: Rows, keys: Iterable[str]) -> list[Columns]:
    """Feature -> numbers (T, size), or pictures (T, height, width, 3) of features of dtype `image`, of each episode.

    Raises:
        DatasetError: a data file is missing or damaged, or lacks frames of an episode or one of `keys`.
    """
    keys = list(keys)
    episodes: list[Columns] = []
    open_path, table, first = None, pa.table({}), 0
    for row in rows:
        path = _place(root, info, "data_path", row, "data/")
        if path != open_path:
            open_path, table = path, read_table(path)
            first = int(column(table, "index", path)[0, 0]) if len(table) else 0
        with reading(path):
            frames = table.slice(row["dataset_from_index"] - first, row["length"])
            expected = np.arange(row["dataset_from_index"], row["dataset_to_index"])[:, None]
            whole = len(expected) == row["length"] > 0 and np.array_equal(column(frames, "index", path), expected)
            if not whole or (column(frames, "episode_index", path) != row["episode_index"]).any():
                found = f"found {len(frames)} of {row['length']}"
                raise DatasetError(f"{path}: frames of episode {row['episode_index']} are not where meta/episodes says; {found}")
            episodes.append({key: _column(frames, key, info, path) for key in keys})
    return episodes


def read_pictures(root: Path, info: dict[str, Any], rows: Rows, key: str) -> list[NDArray[np.uint8]]:
    """Pictures (T, height, width, 3) of the camera `key` of each episode.

    Raises:
        DatasetError: a video is missing or damaged, or lacks pictures of an episode.
    """
    files: dict[Path, list[tuple[float, int, int]]] = {}
    for number, row in enumerate(rows):
        path = _place(root, info, "video_path", row, f"videos/{key}/", video_key=key)
        with reading(path):
            files.setdefault(path, []).append((float(row[f"videos/{key}/from_timestamp"]), row["length"], number))
    pictures: dict[int, NDArray[np.uint8]] = {}
    for path, spans in files.items():
        starts, lengths, numbers = zip(*sorted(spans), strict=True)
        pictures |= zip(numbers, decode(path, starts, lengths, float(info["fps"])), strict=True)
    return [pictures[number] for number in range(len(rows))]


def read_ours(root: Path, info: dict[str, Any], rows: Rows) -> Dataset:
    """A dataset that this package wrote."""
    with reading(root / layout.INFO):
        version = info[layout.KEY].get("format_version")
        if version != layout.FORMAT_VERSION:
            raise DatasetError(
                f"{root / layout.INFO}: {layout.KEY} format_version {version!r}; this Armstack reads version {layout.FORMAT_VERSION}"
            )
        contract = RobotContract.from_json(json.dumps(info[layout.KEY]["contract"]))
    features = layout.number_features(contract)
    numbers = read_numbers(root, info, rows, [*features, "action", "next.reward", layout.STAMP])
    pictures = {channel: read_pictures(root, info, rows, layout.image_key(channel)) for channel in layout.image_channels(contract)}
    path = root / layout.EXTRAS
    table = read_table(path)
    if len(table) != len(rows):
        valid = f"{len(rows)}, one an episode; without {layout.KEY!r} in {layout.INFO} the dataset is read as one that LeRobot made"
        raise DatasetError(f"{path}: {len(table)} rows, valid: {valid}")
    episodes = []
    with reading(path):
        for index, columns in enumerate(numbers):
            last = table.slice(index, 1)
            observations: Columns = {}
            for key, channels in features.items():
                values = np.concatenate([columns[key], column(last, key, path)])
                ends = np.cumsum([channel.size for channel in channels])[:-1]
                observations |= zip([channel.name for channel in channels], np.split(values, ends, axis=1), strict=True)
            for channel, frames in pictures.items():
                final = from_file(last.column(layout.image_key(channel))[0].as_py())
                observations[channel.name] = layout.from_pictures(np.concatenate([frames[index], final[None]]), channel)
            ordered = {c.name: np.ascontiguousarray(observations[c.name], c.dtype) for c in contract.observation}
            episodes.append(
                _episode(columns, ordered, last.drop_columns([*features, *map(layout.image_key, pictures)]).to_pylist()[0], contract)
            )
    return Dataset(contract=contract, episodes=tuple(episodes), source=str(root))


def _episode(columns: Columns, observations: Columns, facts: dict[str, Any], contract: RobotContract) -> Episode:
    applied = facts["action_applied"]
    ages = {name: facts[f"age_ns.{name}"] for name in observations}
    return Episode(
        observations=observations,
        actions=columns["action"],
        rewards=columns["next.reward"][:, 0],
        terminal=facts["terminal"],
        truncated=facts["truncated"],
        stamps_ns=np.append(columns[layout.STAMP][:, 0], np.int64(facts[layout.STAMP])),
        action_applied=None if applied is None else np.asarray(applied, np.float32).reshape(-1, contract.action.size),
        observation_age_ns={name: np.asarray(values, np.int64) for name, values in ages.items() if values is not None},
        success=facts["success"],
        uuid=facts["uuid"],
        meta=json.loads(facts["meta"]),
    )


def _place(root: Path, info: dict[str, Any], template: str, row: dict[str, Any], prefix: str, **names: str) -> Path:
    """The file that `template` of info.json names for one episode."""
    with reading(root / "meta"):
        indices = {name: row[prefix + name] for name in ("chunk_index", "file_index")}
        return root / info[template].format(**indices, **names)


def _column(frames: pa.Table, key: str, info: dict[str, Any], path: Path) -> NDArray[Any]:
    if info["features"][key]["dtype"] != "image":
        return column(frames, key, path)
    if key not in frames.column_names:
        raise DatasetError(f"{path}: no column {key!r}; found {frames.column_names}")
    return np.stack([from_file(picture["bytes"]) for picture in frames.column(key).to_pylist()])
