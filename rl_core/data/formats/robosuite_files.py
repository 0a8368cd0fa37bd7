"""Files that robomimic or robosuite's collection scripts made: no contract, no stamps, robosuite's names.

The contract is inferred from `env_args` (robomimic) or `env`, `env_info` (robosuite) by `robosuite_names`; stamps are counted at
the control rate. A file with states and actions only is read as episodes with the one channel `states`.
"""

from __future__ import annotations

import logging
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Channel, RobotContract
from rl_core.data.annotations import ep_meta
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.fingerprint import content_uuid
from rl_core.data.formats.base_frame import BasePose
from rl_core.data.formats.endings import end_observations
from rl_core.data.formats.reader_notes import is_narrowed, say_inferred, say_narrowed
from rl_core.data.formats.robosuite_names import RobosuiteSettings, channel_for, rename
from rl_core.data.hdf5 import read_array, read_json, read_numbers, to_float32
from rl_core.data.training_data import STATES

logger = logging.getLogger(__name__)

Arrays = dict[str, NDArray[Any]]


def read_foreign(data: h5py.Group, demos: list[str], source: str) -> Dataset:
    """Reads the demos of a file without a contract.

    Raises:
        DatasetError: a field is missing or of the wrong length, or the demos differ in their channels.
    """
    settings = RobosuiteSettings.from_attributes(read_json(data, "env_args"), data.attrs.get("env"), read_json(data, "env_info"))
    say_inferred(source, f"it is inferred from env_args and robosuite's names, stamps are counted at {1 / settings.period_s:g} Hz")
    if not any("obs" in data[demo] for demo in demos):
        return _read_states(data, demos, settings, source)
    # one frame for the whole file: base where every demo says where its robot stands, else robosuite's world
    poses = [BasePose.from_model(data[demo].attrs.get("model_file")) for demo in demos]
    in_base = all(pose is not None for pose in poses)
    if not in_base:
        logger.warning("%s: no model_file says where the robot stands; positions stay in robosuite's world frame", source)
    episodes = [_read_demo(data[demo], settings, pose if in_base else None) for demo, pose in zip(demos, poses, strict=True)]
    say_narrowed(source, dict.fromkeys(name for demo in demos for name in _narrowed(data[demo])))
    names = {demo: sorted(episode.observations) for demo, episode in zip(demos, episodes, strict=True)}
    if len({tuple(found) for found in names.values()}) > 1:
        raise DatasetError(f"{source}: demonstrations differ in their channels: {names}; valid: equal ones")
    first = episodes[0]
    channels = tuple(channel_for(name, values, settings, "base" if in_base else "world") for name, values in first.observations.items())
    return _dataset(channels, episodes, settings, source)


def _read_demo(demo: h5py.Group, settings: RobosuiteSettings, pose: BasePose | None) -> Episode:
    where = f"{demo.file.filename}: {demo.name}"
    actions = read_array(demo, "actions")
    if actions.ndim != 2 or not len(actions):
        raise DatasetError(f"{where}/actions has shape {actions.shape}, valid: (steps, size) with 1 step or more")
    steps = len(actions)
    if not isinstance(demo.get("obs"), h5py.Group):
        raise DatasetError(f"{where}/obs is missing; found {sorted(demo)}")
    keys = list(demo["obs"])
    before = {key: read_array(demo, f"obs/{key}", rows=steps) for key in keys}
    after = {key: read_array(demo, f"next_obs/{key}", rows=steps)[-1:] for key in keys} if "next_obs" in demo else None
    rewards = read_numbers(demo, "rewards", rows=steps) if "rewards" in demo else np.zeros(steps, np.float32)
    dones = read_numbers(demo, "dones", rows=steps) if "dones" in demo else np.zeros(steps, np.float32)
    success = settings.success(rewards)
    # robomimic writes done = 1 at the end of every trajectory (done_mode 1 and 2): without success it was a time limit
    terminal = bool(dones[-1]) and bool(success)
    observations, kept = end_observations(before, after, terminal=terminal)
    return Episode(
        observations=rename(observations, settings, pose),
        actions=to_float32(actions, f"{where}/actions")[:kept],
        rewards=rewards[:kept],
        terminal=terminal,
        truncated=not terminal,
        stamps_ns=settings.stamps_ns(kept),
        success=success,
        uuid=content_uuid(actions, before),
        meta={
            "demo": demo.name.rsplit("/", 1)[-1],
            "task": settings.task,
            "stamps": "counted at the control rate",
            **ep_meta(read_json(demo, "ep_meta")),
        },
    )


def _narrowed(demo: h5py.Group) -> list[str]:
    """Names of the arrays whose numbers are more than float32 holds."""
    arrays = {name: demo["obs"][name] for name in demo["obs"]} | {name: demo[name] for name in ("actions", "rewards") if name in demo}
    return [name for name, values in arrays.items() if values.dtype.itemsize > 4 and is_narrowed(values[()])]


def _read_states(data: h5py.Group, demos: list[str], settings: RobosuiteSettings, source: str) -> Dataset:
    logger.warning(
        "%s: simulator states and actions, no observations; it can be replayed, and trained on once observations were extracted", source
    )
    episodes = []
    for name in demos:
        demo = data[name]
        actions = read_array(demo, "actions")
        states = read_array(demo, "states", rows=len(actions))
        if actions.ndim != 2 or states.ndim != 2 or not len(actions):
            raise DatasetError(f"{source}: {name}: actions {actions.shape}, states {states.shape}; valid: (steps, size), 1 step or more")
        # the collection script drops the state after the last action: not a number says that it isn't known
        ended = np.concatenate([states, np.full_like(states[:1], np.nan)])
        episodes.append(
            Episode(
                observations={STATES: ended},
                actions=to_float32(actions, f"{source}: {name}/actions"),
                rewards=np.zeros(len(actions), np.float32),
                terminal=False,
                truncated=True,
                stamps_ns=settings.stamps_ns(len(actions)),
                uuid=content_uuid(actions, {STATES: states}),
                meta={"demo": name, "task": settings.task, "note": "states only; observations must be extracted before training"},
            )
        )
    width = episodes[0].observations[STATES].shape[1]
    channel = Channel(name=STATES, kind="latent", names=tuple(f"states_{i}" for i in range(width)), dtype="float64")
    return _dataset((channel,), episodes, settings, source)


def _dataset(channels: tuple[Channel, ...], episodes: list[Episode], settings: RobosuiteSettings, source: str) -> Dataset:
    sizes = {episode.actions.shape[1] for episode in episodes}
    if len(sizes) > 1:
        raise DatasetError(f"{source}: actions of {sorted(sizes)} dimensions; valid: one size")
    contract = RobotContract(robot=settings.robot, observation=channels, action=settings.action(sizes.pop(), source))
    return Dataset(contract=contract, episodes=tuple(episodes), source=source)
