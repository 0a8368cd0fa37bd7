"""robomimic's HDF5: the native layout with a contract (`rl_core.data.demo_layout`), and files that robomimic or robosuite made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import h5py

from rl_core.data.demo_layout import create_data, demo_names, read_contract, read_demo, write_demo
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.formats.base import require_numbers, require_writable
from rl_core.data.formats.robosuite_files import read_foreign
from rl_core.data.hdf5 import create_hdf5, is_hdf5, open_hdf5, top_level


class RobomimicFormat:
    """See the module."""

    name = "robomimic"
    layout = "an HDF5 file with data/demo_K/actions"
    extensions = (".hdf5", ".h5")
    entries: tuple[str, ...] = ()
    cannot_hold: Mapping[str, str] = {}
    check_contract = staticmethod(require_numbers)

    def matches(self, path: Path) -> bool:
        """An HDF5 file with a group `data`, or one that cannot be opened (which then says why)."""
        return is_hdf5(path) and (not (names := top_level(path)) or "data" in names)

    def read(self, path: Path) -> Dataset:
        """Reads all demos in the order of their numbers.

        Raises:
            DatasetError: damaged, a field missing or of the wrong length, or a version this code does not know.
        """
        with open_hdf5(path) as file:
            data = file.get("data")
            if not isinstance(data, h5py.Group):
                raise DatasetError(f"{path}: no group 'data'; found {sorted(file)}")
            demos = demo_names(data)
            if not demos:
                raise DatasetError(f"{path}: no demonstration under 'data'; found {sorted(data)[:5]}, valid: demo_0, demo_1, ...")
            if "contract" not in data.attrs:
                return read_foreign(data, demos, str(path))
            contract = read_contract(data)
            return Dataset(contract=contract, episodes=tuple(read_demo(data[demo], contract) for demo in demos), source=str(path))

    def write(self, dataset: Dataset, path: Path) -> None:
        """Writes all episodes; raises DatasetError where there are none, or one has no step or lacks a channel of the contract."""
        require_writable(dataset, path)
        with create_hdf5(path) as file:
            data = create_data(file, dataset.contract)
            for index, episode in enumerate(dataset.episodes):
                write_demo(data, f"demo_{index}", episode, dataset.contract)
            data.attrs["total"] = dataset.steps
