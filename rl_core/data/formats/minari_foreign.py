"""Minari datasets without a contract: it is inferred from the spaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Action, Channel, RobotContract
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.fingerprint import content_uuid
from rl_core.data.formats.reader_notes import is_narrowed, say_inferred, say_narrowed

PERIOD_S = 0.05
"""Assumed period: Minari states none. Only stamps follow from it."""
SUCCESS = ("success", "is_success")
"""Infos that say whether the task is solved, in the words of Gymnasium-Robotics' environments."""


def read_foreign(storage: Any, episodes: Sequence[tuple[dict[str, Any], dict[str, Any]]], path: Path) -> Dataset:
    """Makes a dataset of what the library read: (episode, its metadata) pairs.

    A space that isn't a Dict is the one channel `observation`; keys of nested Dicts are joined by dots. Raises DatasetError for
    spaces other than Box and Dict.
    """
    boxes = dict(_boxes(storage.observation_space, "", path))
    contract = RobotContract(
        robot="unknown",
        observation=tuple(_channel(name, box, path) for name, box in boxes.items()),
        action=_action(storage.action_space, path),
    )
    say_inferred(path, f"it is inferred from the spaces, without units and frames; Minari states no period: stamps assume {PERIOD_S} s")
    say_narrowed(path, [key for key in ("actions", "rewards") if any(is_narrowed(np.asarray(data[key])) for data, _ in episodes)])
    return Dataset(contract=contract, episodes=tuple(_episode(*each, contract, storage.metadata) for each in episodes), source=str(path))


def _boxes(space: Any, name: str, path: Path) -> Iterator[tuple[str, Any]]:
    """(channel name, Box) of every leaf."""
    from gymnasium.spaces import Box, Dict

    if isinstance(space, Dict):
        for key, inner in space.spaces.items():
            yield from _boxes(inner, f"{name}.{key}" if name else key, path)
    elif isinstance(space, Box):
        yield name or "observation", space
    else:
        raise DatasetError(f"{path}: observation {name!r} is a {type(space).__name__} space; valid: Box, or Dict of Box")


def _channel(name: str, box: Any, path: Path) -> Channel:
    size = int(np.prod(box.shape))
    if box.dtype == np.uint8 and len(box.shape) in (2, 3):
        shape = (*box.shape, 1)[:3]
        if shape[2] not in (1, 3):
            raise DatasetError(f"{path}: observation {name!r} has the shape {box.shape}; valid for uint8: (H, W), (H, W, 1), (H, W, 3)")
        return Channel(name=name, kind="image", shape=shape, encoding="rgb8" if shape[2] == 3 else "mono8", row_order="top_down")
    return Channel(name=name, names=tuple(f"{name}_{i}" for i in range(size)), dtype=str(box.dtype))


def _action(space: Any, path: Path) -> Action:
    from gymnasium.spaces import Box

    if not isinstance(space, Box):
        raise DatasetError(f"{path}: actions are a {type(space).__name__} space; valid: Box")
    size = int(np.prod(space.shape))
    # policies act within [-1, 1]: the scale is how far the space reaches; where it has no end, numbers stay as they are
    reach = np.maximum(np.abs(space.low), np.abs(space.high)).reshape(-1).astype(np.float64)
    scale = tuple(float(value) if np.isfinite(value) and value > 0 else 1.0 for value in reach)
    return Action(
        names=tuple(f"action_{i}" for i in range(size)), meaning="absolute", space="joint", scale=scale, units=("1",) * size,
        frame="", period_s=PERIOD_S,
    )  # fmt: skip


def _episode(data: dict[str, Any], attributes: dict[str, Any], contract: RobotContract, metadata: dict[str, Any]) -> Episode:
    scale = np.array(contract.action.scale)
    actions = (np.asarray(data["actions"], np.float64).reshape(-1, contract.action.size) / scale).astype(np.float32)
    rows = len(actions) + 1
    given, observations = dict(_leaves(data["observations"], "")), {}
    for channel in contract.observation:
        values = given[channel.name]
        if values.size != rows * channel.size:
            raise DatasetError(
                f"episode {data['id']}: observation {channel.name!r} has shape {values.shape}, valid: {(rows, *channel.shape)}"
            )
        observations[channel.name] = values.reshape(rows, *channel.shape).astype(channel.dtype, copy=False)
    terminal = bool(data["terminations"][-1])
    return Episode(
        observations=observations,
        actions=actions,
        rewards=np.asarray(data["rewards"], np.float32),
        terminal=terminal,
        truncated=bool(data["truncations"][-1]) or not terminal,
        stamps_ns=np.arange(rows, dtype=np.int64) * round(PERIOD_S * 1e9),
        success=_success(data["infos"] or {}),
        uuid=content_uuid(actions, observations),
        meta={
            key: value
            for key, value in {"dataset_id": metadata.get("dataset_id"), "seed": attributes.get("seed")}.items()
            if value is not None
        },
    )


def _leaves(values: Any, name: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """(channel name, array) of every leaf, named as `_boxes` names them."""
    if isinstance(values, dict):
        for key, inner in values.items():
            yield from _leaves(inner, f"{name}.{key}" if name else key)
    else:
        yield name or "observation", np.asarray(values)


def _success(infos: dict[str, Any]) -> bool | None:
    """Whether the task was solved at any step; None where no info tells."""
    told = [np.asarray(infos[name]) for name in SUCCESS if name in infos]
    return bool(told[0].any()) if told and told[0].dtype.kind in "bifu" else None
