"""LeRobotDataset v3.0 (https://huggingface.co/docs/lerobot/lerobot-dataset-v3), read and written without LeRobot.

    FOLDER/meta/info.json                               fps, features, totals, path templates; ours adds `armstack`: version, contract
    FOLDER/meta/stats.json                              what LeRobot normalises by
    FOLDER/meta/tasks.parquet                           texts of the tasks; ours: `task` of an episode's meta, or the robot
    FOLDER/meta/episodes/chunk-000/file-000.parquet     an episode a row: length, tasks, where its frames lie, its statistics
    FOLDER/data/chunk-000/file-000.parquet              a frame a row, many episodes a file
    FOLDER/videos/KEY/chunk-000/file-000.mp4            pictures of one camera, many episodes a file
    FOLDER/meta/armstack.parquet                        ours, read by nobody else: an episode a row, what LeRobot has no place for

LeRobot keeps a frame for each action; the observation after the last one lies in our own table, its pictures as PNG. `timestamp` is
frame_index / fps as LeRobot wants it, `stamp_ns` the true time. The modules: `lerobot_layout` names and places, `lerobot_writer`,
`lerobot_reader`, `lerobot_foreign` for datasets that LeRobot made, `lerobot_tables`, `lerobot_video`, `lerobot_stats`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rl_core.contract import RobotContract
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.formats.base import require_library, require_plain_names, require_writable
from rl_core.data.formats.lerobot_layout import INFO, KEY
from rl_core.data.staging import staged


class LeRobotFormat:
    """See the module."""

    name = "lerobot"
    layout = f"a folder with {INFO} of codebase_version v3"
    extensions: tuple[str, ...] = ()
    entries: tuple[str, ...] = ("meta", "data", "videos", "images", "README.md", ".*")
    cannot_hold: Mapping[str, str] = {}

    def check_contract(self, contract: RobotContract, path: Path) -> None:
        """Raises DatasetError for text channels, and for names with a '/'."""
        require_plain_names(contract, path, "LeRobot")

    def matches(self, path: Path) -> bool:
        """A folder with LeRobot's `info.json`; one of another version then says so."""
        return (path / INFO).is_file()

    def read(self, path: Path) -> Dataset:
        """Reads all episodes.

        Raises:
            DatasetError: another version of the layout, a file damaged or missing, or a contract of an unknown version.
        """
        require_library(self.name, "pyarrow")
        from rl_core.data.formats.lerobot_foreign import read_foreign
        from rl_core.data.formats.lerobot_reader import read_episode_rows, read_info, read_ours

        info = read_info(path)
        rows = read_episode_rows(path, info)
        return read_ours(path, info, rows) if KEY in info else read_foreign(path, info, rows)

    def write(self, dataset: Dataset, path: Path) -> None:
        """Writes all episodes; an older LeRobot dataset is replaced.

        Raises:
            DatasetError: `path` is something else, an episode cannot be written, or a channel's name has a '/'.
        """
        require_library(self.name, "pyarrow")
        from rl_core.data.formats.lerobot_writer import write_folder

        require_writable(dataset, path)
        path = path.resolve()
        self.check_contract(dataset.contract, path)
        if path.exists() and not self.matches(path):
            raise DatasetError(f"{path}: is no LeRobot dataset; valid: a new folder, or an older dataset to replace")
        with staged(path) as folder:
            write_folder(dataset, folder)
