"""What our D4RL files hold beside D4RL's own arrays, so that nothing but images is lost.

    contract (attribute)                        infos/episodes (E,) JSON: uuid, steps, endings, success, meta
    infos/stamps_ns, infos/next_stamps_ns (N,)  infos/action_applied (N, A)
    infos/age_ns/CHANNEL, infos/next_age_ns/CHANNEL (N,)
    infos/channels/CHANNEL, infos/next_channels/CHANNEL (N, ...): those that are not float32, in their own type

N is the number of steps over all E episodes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from rl_core.contract import RobotContract
from rl_core.data.episode import DatasetError, Episode
from rl_core.data.formats.episode_facts import facts_of, fields_from
from rl_core.data.hdf5 import read_array, write_array, write_text


def write_infos(file: h5py.File, episodes: tuple[Episode, ...], contract: RobotContract) -> None:
    """Writes the contract, which has no images, and the group `infos`."""
    write_text(file, "contract", contract.to_json())
    infos = file.create_group("infos")
    facts = [json.dumps(_facts(episode, contract), sort_keys=True) for episode in episodes]
    write_array(infos, "episodes", np.array(facts, np.bytes_))
    _write_rows(infos, "stamps_ns", [episode.stamps_ns for episode in episodes])
    for channel in contract.observation:
        name = channel.name
        if channel.dtype != "float32":
            _write_rows(infos, f"channels/{name}", [episode.observations[name].astype(channel.dtype) for episode in episodes])
        if any(name in episode.observation_age_ns for episode in episodes):
            # where an episode has none, zeros keep its place; its facts say so
            ages = [episode.observation_age_ns.get(name, np.zeros(len(episode) + 1)) for episode in episodes]
            _write_rows(infos, f"age_ns/{name}", [np.asarray(rows, np.int64) for rows in ages])
    if any(episode.action_applied is not None for episode in episodes):
        applied = [episode.actions if episode.action_applied is None else episode.action_applied for episode in episodes]
        write_array(infos, "action_applied", np.concatenate(applied).astype(np.float32))


def read_infos(file: h5py.File, fields: Mapping[str, NDArray[Any]], contract: RobotContract) -> Iterator[Episode]:
    """The episodes of a file with a contract, given D4RL's own arrays: nothing has to be guessed.

    Raises:
        DatasetError: the steps of the episodes aren't those of the arrays.
    """
    facts = [json.loads(text) for text in read_array(file, "infos/episodes")]
    steps = [int(fact["steps"]) for fact in facts]
    if min(steps, default=0) < 1 or sum(steps) != len(fields["actions"]):
        raise DatasetError(f"{file.filename}: infos/episodes has {steps} steps; valid: 1 or more each, {len(fields['actions'])} in all")
    for fact, end in zip(facts, np.cumsum(steps), strict=True):
        rows = slice(int(end) - int(fact["steps"]), int(end))
        flat = np.concatenate([fields["observations"][rows], fields["next_observations"][rows][-1:]])
        own = [channel.name for channel in contract.observation if channel.dtype != "float32"]
        yield Episode(
            observations={**split_channels(flat, contract), **{name: _read_rows(file, f"channels/{name}", rows) for name in own}},
            actions=fields["actions"][rows],
            rewards=fields["rewards"][rows],
            stamps_ns=_read_rows(file, "stamps_ns", rows),
            action_applied=file["infos/action_applied"][rows] if fact["applied"] else None,
            observation_age_ns={name: _read_rows(file, f"age_ns/{name}", rows) for name in fact["aged"]},
            **fields_from(fact),
        )


def split_channels(flat: NDArray[Any], contract: RobotContract) -> dict[str, NDArray[Any]]:
    """The columns of `flat` (rows, O) by channel; raises DatasetError where their number isn't the contract's."""
    sizes = {channel.name: channel.size for channel in contract.low_dimensional}
    if flat.shape[1] != sum(sizes.values()):
        raise DatasetError(f"observations have {flat.shape[1]} columns, the contract says {sum(sizes.values())}: {sizes}")
    parts = np.split(flat, np.cumsum(list(sizes.values()))[:-1], axis=1)
    return {channel.name: part.astype(channel.dtype) for channel, part in zip(contract.low_dimensional, parts, strict=True)}


def _facts(episode: Episode, contract: RobotContract) -> dict[str, Any]:
    return {
        **facts_of(episode),
        "steps": len(episode),
        "applied": episode.action_applied is not None,
        "aged": [channel.name for channel in contract.observation if channel.name in episode.observation_age_ns],
    }


def _write_rows(infos: h5py.Group, name: str, values: list[NDArray[Any]]) -> None:
    """Arrays (T + 1, ...) of all episodes, as `NAME` before each action and `next_NAME` after it."""
    write_array(infos, name, np.concatenate([rows[:-1] for rows in values]))
    write_array(infos, f"next_{name}", np.concatenate([rows[1:] for rows in values]))


def _read_rows(file: h5py.File, name: str, rows: slice) -> NDArray[Any]:
    before, after = file[f"infos/{name}"], file[f"infos/next_{name}"]
    return np.concatenate([before[rows], after[rows.stop - 1 : rows.stop]])
