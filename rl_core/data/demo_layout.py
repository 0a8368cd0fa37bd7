"""The native layout of an episode, robomimic's HDF5: https://robomimic.github.io/docs/datasets/overview.html

    data                            attrs: total, env_args; ours adds contract, format_version
    data/demo_K                     attrs: num_samples, ep_meta {lang} where known; ours adds uuid, terminal, truncated, success, meta
    data/demo_K/obs/CHANNEL         (T, ...) what was seen before each action
    data/demo_K/next_obs/CHANNEL    (T, ...) what was seen after it
    data/demo_K/actions             (T, A)
    data/demo_K/rewards, dones      (T,)
    data/demo_K/stamps_ns           (T + 1,) int64, ours
    data/demo_K/action_applied      (T, A), ours, where it was recorded
    data/demo_K/age_ns/CHANNEL      (T + 1,) int64, ours, where it was recorded

`dones` is 1 only where the task ended: readers that mask bootstrapping by it are right about time limits too.
"""

from __future__ import annotations

import json
import re
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from rl_core.contract import RobotContract
from rl_core.data.annotations import ep_meta
from rl_core.data.episode import DatasetError, Episode
from rl_core.data.hdf5 import (
    parse_json,
    read_array,
    read_attributes,
    read_last_row,
    read_numbers,
    read_text,
    write_array,
    write_text,
)

FORMAT_VERSION = 1


def demo_names(data: h5py.Group) -> list[str]:
    """Names of the demonstrations in `data`, by number (demo_2 before demo_10)."""
    numbered = {name: re.fullmatch(r"demo_?(\d+)", name) for name in data}
    return sorted((name for name, match in numbered.items() if match), key=lambda name: int(numbered[name].group(1)))  # type: ignore[union-attr]


def create_data(file: h5py.File, contract: RobotContract) -> h5py.Group:
    """The group `data` with its attributes; `total` is 0 until the writer knows it."""
    data = file.create_group("data")
    # robomimic's EnvType.GYM_TYPE is 2
    write_text(data, "env_args", json.dumps({"env_name": contract.robot, "type": 2, "env_kwargs": {}}))
    write_text(data, "contract", contract.to_json())
    data.attrs["format_version"] = FORMAT_VERSION
    data.attrs["total"] = 0
    return data


def read_contract(data: h5py.Group) -> RobotContract:
    """The contract in the attributes of `data`, with its version checked."""
    version = data.attrs.get("format_version")
    if version != FORMAT_VERSION:
        raise DatasetError(f"{data.file.filename}: format_version {version!r}; this Armstack reads version {FORMAT_VERSION}")
    return RobotContract.from_json(read_text(data, "contract"))


def write_demo(data: h5py.Group, name: str, episode: Episode, contract: RobotContract) -> None:
    """Writes one episode as `data/NAME`."""
    missing = [channel.name for channel in contract.observation if channel.name not in episode.observations]
    if missing or not len(episode):
        raise DatasetError(f"episode {episode.uuid}: {len(episode)} steps, channels {missing} missing; valid: 1 step or more, all channels")
    demo = data.create_group(name)
    demo.attrs["num_samples"] = len(episode)
    write_text(demo, "uuid", episode.uuid)
    demo.attrs["terminal"] = bool(episode.terminal)
    demo.attrs["truncated"] = bool(episode.truncated)
    if episode.success is not None:
        demo.attrs["success"] = bool(episode.success)
    write_text(demo, "meta", json.dumps(dict(episode.meta), sort_keys=True))
    if said := ep_meta(episode.meta):
        write_text(demo, "ep_meta", json.dumps(said))
    for channel in contract.observation:
        values = np.asarray(episode.observations[channel.name])
        if channel.kind == "text":
            raise DatasetError(f"episode {episode.uuid}: channel {channel.name!r} is text; valid in an observation: numbers and images")
        values = values.astype(channel.dtype, copy=False)
        # images are compressed picture by picture, so that one can be read without the others
        options: dict[str, Any] = {}
        if channel.kind == "image":
            options = {"compression": "gzip", "compression_opts": 1, "chunks": (1, *channel.shape)}
        write_array(demo, f"obs/{channel.name}", values[:-1], **options)
        write_array(demo, f"next_obs/{channel.name}", values[1:], **options)
    dones = np.zeros(len(episode), np.int64)
    dones[-1] = episode.terminal
    write_array(demo, "actions", np.asarray(episode.actions, np.float32))
    write_array(demo, "rewards", np.asarray(episode.rewards, np.float32))
    write_array(demo, "dones", dones)
    write_array(demo, "stamps_ns", np.asarray(episode.stamps_ns, np.int64))
    if episode.action_applied is not None:
        write_array(demo, "action_applied", np.asarray(episode.action_applied, np.float32))
    for channel_name, ages in episode.observation_age_ns.items():
        write_array(demo, f"age_ns/{channel_name}", np.asarray(ages, np.int64))


def read_demo(demo: h5py.Group, contract: RobotContract) -> Episode:
    """Reads what `write_demo` wrote."""
    where = f"{demo.file.filename}: {demo.name}"
    facts = read_attributes(demo)
    actions = read_numbers(demo, "actions", columns=contract.action.size)
    steps = len(actions)
    if not steps or facts.get("num_samples", steps) != steps:
        raise DatasetError(f"{where}: {steps} actions, num_samples {facts.get('num_samples')}; valid: equal, 1 or more")
    unknown = {"uuid", "terminal", "truncated"} - facts.keys()
    if unknown:
        raise DatasetError(f"{where}: attributes {sorted(unknown)} are missing; found {sorted(facts)}")
    observations: dict[str, NDArray[Any]] = {}
    for channel in contract.observation:
        before = read_array(demo, f"obs/{channel.name}", rows=steps)
        last = read_last_row(demo, f"next_obs/{channel.name}", rows=steps)
        if before.shape[1:] != channel.shape:
            raise DatasetError(f"{where}/obs/{channel.name} has rows of shape {before.shape[1:]}, the contract says {channel.shape}")
        observations[channel.name] = np.concatenate([before, last]).astype(channel.dtype, copy=False)
    applied = read_numbers(demo, "action_applied", rows=steps, columns=contract.action.size) if "action_applied" in demo else None
    aged = [channel.name for channel in contract.observation if f"age_ns/{channel.name}" in demo] if "age_ns" in demo else []
    return Episode(
        observations=observations,
        actions=actions,
        rewards=read_numbers(demo, "rewards", rows=steps),
        terminal=bool(facts["terminal"]),
        truncated=bool(facts["truncated"]),
        stamps_ns=read_array(demo, "stamps_ns", rows=steps + 1).astype(np.int64),
        action_applied=applied,
        observation_age_ns={name: read_array(demo, f"age_ns/{name}", rows=steps + 1).astype(np.int64) for name in aged},
        success=bool(facts["success"]) if "success" in facts else None,
        uuid=str(facts["uuid"]),
        meta=parse_json(facts.get("meta", "{}"), f"{where}: attribute 'meta'"),
    )
