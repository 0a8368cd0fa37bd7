"""Reading demonstrations for training, whatever recorded them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import h5py

from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.formats import FORMATS, read_dataset
from rl_core.data.formats.robosuite_names import RobosuiteSettings, channel_for
from rl_core.data.hdf5 import read_json
from rl_core.data.recording import DATASET_FILE, finished_episodes, read_episode, read_folder_contract
from rl_core.data.training_data import STATES


def _check_folder(path: Path) -> None:
    """Raises DatasetError for a folder that is no dataset, with what there is to give in its place."""
    if not path.is_dir() or any(format.matches(path) for format in FORMATS):
        return
    inside = [str(file.parent) for file in sorted(path.glob(f"*/{DATASET_FILE}"))]
    files = [str(file) for file in sorted(path.glob("*.hdf5"))]
    message = f"{path}: no {DATASET_FILE}; valid: a folder that `armstack collect` or a recorder wrote, or one HDF5 file"
    if inside:
        message += f"; such a folder is {inside[0]}"
    elif files:
        message += f"; there are {len(files)} HDF5 files in it, give one of them: {files[0]}"
    raise DatasetError(message)


def read_collected(folder: Path) -> Dataset:
    """What `collect` recorded into `folder`.

    Raises:
        DatasetError: damaged; says which files to delete so that they are recorded again.
    """
    try:
        return read_demonstrations(folder)
    except DatasetError as error:
        damaged = []
        contract = read_folder_contract(folder)
        for file in finished_episodes(folder).values():
            try:
                read_episode(file, contract)
            except DatasetError:
                damaged.append(str(file))
        if not damaged:
            raise
        raise DatasetError(f"{error}\ndelete {' '.join(damaged)} and call again: what is missing is recorded anew") from error


def read_demonstrations(path: str | Path) -> Dataset:
    """`read_dataset`; for a file of simulator states only (robosuite's collection scripts) the observations are worked out.

    The state after the last action isn't in such files, so their episodes end one step earlier. They hold no rewards either.

    Raises:
        DatasetError: see `read_dataset`.
    """
    _check_folder(Path(path))
    dataset = read_dataset(path)
    if not dataset.episodes or any(set(episode.observations) != {STATES} for episode in dataset.episodes):
        return dataset
    from sim_envs.robosuite_observation import states_to_observations

    found = dict(states_to_observations(path))
    episodes = []
    for episode in dataset.episodes:
        observations = found[episode.meta["demo"]]
        kept = len(episode) - 1
        episodes.append(
            dataclasses.replace(
                episode,
                observations=observations,
                actions=episode.actions[:kept],
                rewards=episode.rewards[:kept],
                stamps_ns=episode.stamps_ns[: kept + 1],
                meta={key: value for key, value in episode.meta.items() if key != "note"},
            )
        )
    with h5py.File(path, "r") as file:
        data = file["data"]
        settings = RobosuiteSettings.from_attributes(read_json(data, "env_args"), data.attrs.get("env"), read_json(data, "env_info"))
    channels = tuple(channel_for(name, values, settings, "base") for name, values in episodes[0].observations.items())
    contract = dataclasses.replace(dataset.contract, observation=channels)
    return Dataset(contract=contract, episodes=tuple(episodes), source=dataset.source)
