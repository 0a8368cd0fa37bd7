"""Writes a LeRobotDataset v3.0 folder; see `rl_core.data.formats.lerobot` for its layout."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset, Episode
from rl_core.data.formats import lerobot_layout as layout
from rl_core.data.formats.lerobot_stats import Stats, aggregate, number_stats, picture_stats
from rl_core.data.formats.lerobot_tables import DATA_FILE_MB, TableShards, new_table, to_arrow, to_png
from rl_core.data.formats.lerobot_video import VIDEO_FILE_MB, VideoShards

Columns = dict[str, NDArray[Any]]


def write_folder(dataset: Dataset, root: Path) -> None:
    """Writes `dataset`, which has episodes and all their channels, into the new folder `root`."""
    contract = dataset.contract
    rate, cameras = layout.frame_rate(contract), layout.image_channels(contract)
    success = all(episode.success is not None for episode in dataset.episodes)
    tasks: dict[str, int] = {}
    rows: list[dict[str, Any]] = []
    stats: list[dict[str, Stats]] = []
    first = 0
    (root / layout.EXTRAS).parent.mkdir(parents=True)
    with ExitStack() as stack:
        data = stack.enter_context(closing(TableShards(root, layout.DATA)))
        videos = {c: stack.enter_context(closing(VideoShards(root, layout.image_key(c), rate))) for c in cameras}
        extras = stack.enter_context(new_table(root / layout.EXTRAS, _extras_schema(contract)))
        for index, episode in enumerate(dataset.episodes):
            steps, task = len(episode), _task(episode, contract)
            observed = _observed_numbers(episode, contract)
            frames = {key: values[:-1] for key, values in observed.items()} | _outcomes(episode, success=success)
            frames |= _indices(index, first, steps, tasks.setdefault(task, len(tasks)), float(rate))
            summary = {key: number_stats(values) for key, values in frames.items()}
            last: dict[str, Any] = {key: to_arrow(values[-1:]) for key, values in observed.items()}

            chunk, file = data.add(pa.table({key: to_arrow(values) for key, values in frames.items()}))
            row: dict[str, Any] = {"episode_index": index, "tasks": [task], "length": steps}
            row |= {"data/chunk_index": chunk, "data/file_index": file, "dataset_from_index": first, "dataset_to_index": first + steps}
            for channel, shards in videos.items():
                key, pictures = (
                    layout.image_key(channel),
                    layout.to_pictures(np.asarray(episode.observations[channel.name], np.uint8), channel),
                )
                row |= shards.add(pictures[:-1])
                summary[key] = picture_stats(pictures[:-1])
                last[key] = [to_png(pictures[-1])]
            row |= {f"stats/{key}/{name}": values.tolist() for key, each in summary.items() for name, values in each.items()}

            extras.write_table(pa.table(_extras(index, episode, contract) | last, schema=_extras_schema(contract)))
            rows.append(row | {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0})
            stats.append(summary)
            first += steps
    _write_json(root / layout.INFO, _info(contract, rows, tasks, layout.describe_features(contract, rate, success=success)))
    _write_json(root / layout.STATS, {key: {name: v.tolist() for name, v in each.items()} for key, each in aggregate(stats).items()})
    _write_tasks(root / layout.TASKS, tasks)
    episodes = root / layout.EPISODES.format(chunk_index=0, file_index=0)
    episodes.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), episodes, write_page_checksum=True)


def _task(episode: Episode, contract: RobotContract) -> str:
    """LeRobot wants a text for every frame."""
    task = episode.meta.get("task")
    return task if isinstance(task, str) and task else contract.robot


def _observed_numbers(episode: Episode, contract: RobotContract) -> Columns:
    """Feature -> (T + 1, size) of all observations that are numbers."""
    return {
        key: np.concatenate([np.asarray(episode.observations[c.name]).astype(c.dtype, copy=False) for c in channels], axis=1)
        for key, channels in layout.number_features(contract).items()
    }


def _outcomes(episode: Episode, *, success: bool) -> Columns:
    """What was done and what came of it, (T, size).

    `next.done` is true only where the task ended, so that a reader which masks bootstrapping by it is right about time limits.
    """
    at_the_end = np.arange(len(episode))[:, None] == len(episode) - 1
    columns: Columns = {
        "action": np.asarray(episode.actions, np.float32),
        "next.reward": np.asarray(episode.rewards, np.float32)[:, None],
        "next.done": at_the_end & episode.terminal,
        layout.STAMP: np.asarray(episode.stamps_ns, np.int64)[:-1, None],
    }
    return columns | ({"next.success": at_the_end & bool(episode.success)} if success else {})


def _indices(index: int, first: int, steps: int, task: int, fps: float) -> Columns:
    frame = np.arange(steps)[:, None]
    return {
        "timestamp": (frame / fps).astype(np.float32),
        "frame_index": frame,
        "episode_index": np.full((steps, 1), index),
        "index": first + frame,
        "task_index": np.full((steps, 1), task),
    }


def _extras_schema(contract: RobotContract) -> pa.Schema:
    last = {
        key: to_arrow(np.empty((0, sum(channel.size for channel in channels)), channels[0].dtype)).type
        for key, channels in layout.number_features(contract).items()
    }
    last |= {layout.image_key(channel): pa.binary() for channel in layout.image_channels(contract)}
    ages = {f"age_ns.{channel.name}": pa.list_(pa.int64()) for channel in contract.observation}
    facts = {"uuid": pa.string(), "terminal": pa.bool_(), "truncated": pa.bool_(), "success": pa.bool_(), "meta": pa.string()}
    return pa.schema(
        {"episode_index": pa.int64(), **facts, layout.STAMP: pa.int64(), "action_applied": pa.list_(pa.float32()), **ages, **last}
    )


def _extras(index: int, episode: Episode, contract: RobotContract) -> dict[str, Any]:
    """One row of our own table, but for the last observation; what wasn't recorded is empty."""
    applied = None if episode.action_applied is None else np.asarray(episode.action_applied, np.float32).reshape(-1)
    return {
        "episode_index": [index],
        "uuid": [episode.uuid],
        "terminal": [bool(episode.terminal)],
        "truncated": [bool(episode.truncated)],
        "success": [None if episode.success is None else bool(episode.success)],
        "meta": [json.dumps(dict(episode.meta), sort_keys=True)],
        layout.STAMP: [int(episode.stamps_ns[-1])],
        "action_applied": [applied],
        **{f"age_ns.{channel.name}": [episode.observation_age_ns.get(channel.name)] for channel in contract.observation},
    }


def _info(contract: RobotContract, rows: list[dict[str, Any]], tasks: dict[str, int], features: dict[str, Any]) -> dict[str, Any]:
    return {
        "codebase_version": layout.VERSION,
        "robot_type": contract.robot,
        "total_episodes": len(rows),
        "total_frames": rows[-1]["dataset_to_index"],
        "total_tasks": len(tasks),
        "chunks_size": layout.CHUNK_FILES,
        "data_files_size_in_mb": DATA_FILE_MB,
        "video_files_size_in_mb": VIDEO_FILE_MB,
        "fps": layout.as_json_number(layout.frame_rate(contract)),
        "splits": {"train": f"0:{len(rows)}"},
        "data_path": layout.DATA,
        "video_path": layout.VIDEOS if layout.image_channels(contract) else None,
        "features": features,
        layout.KEY: {"format_version": layout.FORMAT_VERSION, "contract": json.loads(contract.to_json())},
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=4, ensure_ascii=False), encoding="utf-8")


def _write_tasks(path: Path, tasks: dict[str, int]) -> None:
    """LeRobot looks a task up in the index of a pandas frame; the metadata say, as pandas does, that `task` is that index."""
    text = {"name": "task", "field_name": "task", "pandas_type": "unicode", "numpy_type": "object", "metadata": None}
    number = {"name": "task_index", "field_name": "task_index", "pandas_type": "int64", "numpy_type": "int64", "metadata": None}
    header = text | {"name": None, "field_name": None, "metadata": {"encoding": "UTF-8"}}
    index = {"index_columns": ["task"], "column_indexes": [header], "columns": [number, text], "pandas_version": "2.0.0"}
    table = pa.table({"task_index": pa.array(tasks.values(), pa.int64()), "task": pa.array(tasks, pa.string())})
    pq.write_table(table.replace_schema_metadata({"pandas": json.dumps(index)}), path)
