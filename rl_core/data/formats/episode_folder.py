"""A folder with `dataset.json` and one HDF5 file an episode: what recorders write (see `rl_core.data.recording`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.formats.base import require_numbers, require_writable
from rl_core.data.recording import DATASET_FILE, INDEX_FILE, EpisodeWriter, read_episodes, read_folder_contract
from rl_core.data.staging import staged


class EpisodeFolderFormat:
    """See the module."""

    name = "folder"
    layout = f"a folder with {DATASET_FILE} and one HDF5 file an episode"
    extensions = ("",)
    entries: tuple[str, ...] = (DATASET_FILE, INDEX_FILE, "*.hdf5", ".*")
    cannot_hold: Mapping[str, str] = {}
    check_contract = staticmethod(require_numbers)

    def matches(self, path: Path) -> bool:
        """A folder with `dataset.json`."""
        return (path / DATASET_FILE).is_file()

    def read(self, path: Path) -> Dataset:
        """Reads all finished episodes in the order they were written in, recorded ones by their first stamp, then their uuid.

        Raises:
            DatasetError: no `dataset.json`, or a file is damaged or belongs to another contract.
        """
        contract = read_folder_contract(path)
        return Dataset(contract=contract, episodes=tuple(read_episodes(path, contract)), source=str(path))

    def write(self, dataset: Dataset, path: Path) -> None:
        """Writes the episodes to a new folder; one at `path` is replaced. `EpisodeWriter` adds to a folder instead.

        Raises:
            DatasetError: `path` is something else, or an episode cannot be written.
        """
        require_writable(dataset, path)
        if path.exists() and not self.matches(path) and (path.is_file() or any(path.iterdir())):
            raise DatasetError(f"{path}: is not a folder of episodes; valid: a new folder or one with {DATASET_FILE}")
        with staged(path) as folder:
            writer = EpisodeWriter(folder, dataset.contract, order=[episode.uuid for episode in dataset.episodes])
            for episode in dataset.episodes:
                writer.write(episode)
