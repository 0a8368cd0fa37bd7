"""Datasets that LeRobot itself made: the contract is inferred from the features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Action, Channel, ContractError, RobotContract
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.fingerprint import content_uuid
from rl_core.data.formats.endings import end_observations
from rl_core.data.formats.lerobot_layout import INFO
from rl_core.data.formats.lerobot_reader import Columns, Rows, read_numbers, read_pictures
from rl_core.data.formats.reader_notes import is_narrowed, say_inferred, say_narrowed

NEXT = ("next.reward", "next.done", "next.success")


def read_foreign(root: Path, info: dict[str, Any], rows: Rows) -> Dataset:
    """All features that begin with `observation.` become channels; the numbers of `action` become actions as they are.

    The last step counts as terminal only where `next.done` and `next.success` say so: LeRobot marks the end of every recording as
    done. What followed the last action isn't in the file: of other episodes the last step is left out.

    Raises:
        DatasetError: no `action`, no observation, a rate no contract can have, or a file damaged or missing.
    """
    features: dict[str, Any] = info["features"]
    observed = [key for key in features if key.startswith("observation.") and _is_usable(features[key])]
    if "action" not in features or not observed:
        raise DatasetError(f"{root / INFO}: features {sorted(features)}; valid: action, and one observation.NAME or more")
    names = _channel_names(observed)
    videos = [key for key in observed if features[key]["dtype"] == "video"]
    tabled = [*(key for key in observed if key not in videos), "action", "frame_index", *(key for key in NEXT if key in features)]
    numbers = read_numbers(root, info, rows, tabled)
    for key in videos:
        for columns, pictures in zip(numbers, read_pictures(root, info, rows, key), strict=True):
            columns[key] = pictures
    try:
        contract = RobotContract(
            robot=str(info.get("robot_type") or "unknown"),
            observation=tuple(_channel(names[key], features[key], numbers[0][key]) for key in observed),
            action=_action(features["action"], numbers[0]["action"].shape[1], info["fps"]),
        )
    except ContractError as error:
        raise DatasetError(f"{root / INFO}: fps {info['fps']}, features {sorted(features)}: {error}") from error
    episodes = [_episode(columns, row, names, contract) for columns, row in zip(numbers, rows, strict=True)]
    left_out = sorted(set(features) - set(tabled) - set(videos) - {"timestamp", "episode_index", "index", "task_index"})
    say_inferred(
        root,
        "it is inferred from the features, without units and frames; actions keep the numbers they have; stamps are counted at "
        f"{info['fps']} fps; the last step of an episode that isn't a success is left out, its outcome isn't in the file; "
        f"not read: {left_out or 'nothing'}",
    )
    say_narrowed(root, [key for key in ("action", "next.reward") if any(key in each and is_narrowed(each[key]) for each in numbers)])
    return Dataset(contract=contract, episodes=tuple(episode for episode in episodes if len(episode)), source=str(root))


def _is_usable(feature: Mapping[str, Any]) -> bool:
    """Numbers and colour pictures; not texts, and not depth, which LeRobot quantises in ways of its own."""
    if feature["dtype"] in ("image", "video"):
        facts = {**(feature.get("video_info") or {}), **(feature.get("info") or {})}
        return not (facts.get("is_depth_map") or facts.get("video.is_depth_map"))
    return feature["dtype"].startswith(("float", "int", "uint", "bool"))


def _channel_names(keys: Sequence[str]) -> dict[str, str]:
    """`observation.images.top` -> `top`; with `images.` where another feature has that name."""
    short = {key: key.removeprefix("observation.").removeprefix("images.").removeprefix("channels.") for key in keys}
    taken = list(short.values())
    return {key: name if taken.count(name) == 1 else key.removeprefix("observation.") for key, name in short.items()}


def _channel(name: str, feature: Mapping[str, Any], values: NDArray[Any]) -> Channel:
    if feature["dtype"] in ("image", "video"):
        return Channel(name=name, kind="image", shape=values.shape[1:], encoding="rgb8", row_order="top_down")
    return Channel(name=name, names=_dimension_names(feature.get("names"), values.shape[1], name), dtype=str(values.dtype))


def _action(feature: Mapping[str, Any], size: int, fps: float) -> Action:
    return Action(
        names=_dimension_names(feature.get("names"), size, "action"), meaning="absolute", space="joint", scale=(1.0,) * size,
        units=("1",) * size, frame="", period_s=1 / fps,
    )  # fmt: skip


def _dimension_names(names: Any, size: int, fallback: str) -> tuple[str, ...]:
    """Names as LeRobot has had them: a list, {"motors": list} or {name: index}; numbered ones where they don't fit."""
    if isinstance(names, Mapping):
        lists = [value for value in names.values() if isinstance(value, list)]
        names = lists[0] if len(lists) == 1 else sorted(names, key=lambda name: str(names[name]).zfill(9))
    if isinstance(names, list) and len(names) == size == len(set(map(str, names))):
        return tuple(map(str, names))
    return tuple(f"{fallback}_{i}" for i in range(size))


def _episode(columns: Columns, row: Mapping[str, Any], names: Mapping[str, str], contract: RobotContract) -> Episode:
    success = bool(columns["next.success"].any()) if "next.success" in columns else None
    terminal = "next.done" in columns and bool(columns["next.done"][-1, 0]) and bool(success)
    observations, kept = end_observations({name: columns[key] for key, name in names.items()}, None, terminal=terminal)
    actions = columns["action"][:kept].astype(np.float32)
    frames = np.append(columns["frame_index"][:, 0], columns["frame_index"][-1, 0] + 1)[: kept + 1]
    rewards = columns["next.reward"][:kept, 0] if "next.reward" in columns else np.zeros(kept)
    tasks = row.get("tasks") or []
    return Episode(
        observations=observations,
        actions=actions,
        rewards=rewards.astype(np.float32),
        terminal=terminal,
        truncated=not terminal,
        stamps_ns=np.rint(frames * (contract.action.period_s * 1e9)).astype(np.int64),
        success=success,
        uuid=content_uuid(actions, observations),
        meta={"task": tasks[0]} if len(tasks) == 1 else {"tasks": list(tasks)},
    )
