"""LeRobot datasets that are damaged, of another version, or were changed since."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats.lerobot import LeRobotFormat
from tests.rl_core.data.rich_dataset import rich_dataset
from tests.rl_core.data.test_lerobot_foreign import lerobot_made

FORMAT = LeRobotFormat()


@pytest.fixture
def rich() -> Dataset:
    return rich_dataset()


def change_info(folder, **fields):
    path = folder / "meta/info.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_other_versions_are_refused(tmp_path, rich):
    folder = lerobot_made(tmp_path / "made", video=False)
    change_info(folder, codebase_version="v2.1")
    with pytest.raises(DatasetError, match="LeRobot's layout v2.1, valid: v3.x; LeRobot's convert_dataset_v21_to_v30"):
        FORMAT.read(folder)
    FORMAT.write(rich, tmp_path / "ours")
    info = json.loads((tmp_path / "ours/meta/info.json").read_text())
    change_info(tmp_path / "ours", armstack=info["armstack"] | {"format_version": 9})
    with pytest.raises(DatasetError, match="format_version 9; this Armstack reads version 1"):
        FORMAT.read(tmp_path / "ours")


def test_a_dataset_that_lerobot_edited_is_read_as_lerobots(tmp_path, rich):
    """LeRobot's tools write info.json anew, without our key: nothing of ours may then be believed."""
    FORMAT.write(rich, tmp_path / "lift")
    info = json.loads((tmp_path / "lift/meta/info.json").read_text())
    del info["armstack"]
    (tmp_path / "lift/meta/info.json").write_text(json.dumps(info))
    dataset = FORMAT.read(tmp_path / "lift")
    assert [len(episode) for episode in dataset.episodes] == [6, 3, 2]  # no success column: last steps go, and the episode of one step
    assert {"state", "clock", "front", "wrist"} <= {channel.name for channel in dataset.contract.observation}


def test_episodes_that_lerobot_added_are_not_taken_for_ours(tmp_path, rich):
    FORMAT.write(rich, tmp_path / "lift")
    FORMAT.write(replace(rich, episodes=rich.episodes[:3]), tmp_path / "fewer")
    shutil.copy(tmp_path / "fewer/meta/armstack.parquet", tmp_path / "lift/meta/armstack.parquet")
    with pytest.raises(DatasetError, match="armstack.parquet: 3 rows, valid: 4, one an episode; without 'armstack' in meta/info.json"):
        FORMAT.read(tmp_path / "lift")


def change_table(path, name, values):
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.column_names.index(name), name, values), path)


def test_empty_places_are_nan_among_floats_and_an_error_elsewhere(tmp_path):
    folder = lerobot_made(tmp_path / "lr=0.1", video=False)  # a '=' in a folder's name is no partition
    table = folder / "data/chunk-000/file-000.parquet"
    change_table(table, "observation.state", pa.array([[0.0, None]] * 7, pa.list_(pa.float32())))
    values = FORMAT.read(folder).episodes[0].observations["state"]
    assert (values[:, 0] == 0).all() and np.isnan(values[:, 1]).all()
    change_table(table, "observation.state", pa.array([[0.0, 1.0], *[[0.0]] * 6], pa.list_(pa.float32())))
    with pytest.raises(DatasetError, match="file-000.parquet: lists of different lengths in the column 'observation.state'"):
        FORMAT.read(folder)
    change_table(table, "observation.state", pa.array(["text"] * 7))
    with pytest.raises(DatasetError, match="'observation.state' has type string, valid: numbers"):
        FORMAT.read(folder)
    change_table(table, "next.done", pa.array([None] * 7, pa.bool_()))
    change_table(table, "observation.state", pa.array([[0.0, 1.0]] * 7))
    with pytest.raises(DatasetError, match="4 empty places in the column 'next.done'"):
        FORMAT.read(folder)


def test_missing_files_are_named(tmp_path, rich):
    FORMAT.write(rich, tmp_path / "whole")
    for path in ("data/chunk-000/file-000.parquet", "videos/observation.images.wrist/chunk-000/file-000.mp4", "meta/armstack.parquet"):
        shutil.copytree(tmp_path / "whole", tmp_path / "lift")
        (tmp_path / "lift" / path).unlink()
        with pytest.raises(DatasetError, match=f"{path} is missing"):
            FORMAT.read(tmp_path / "lift")
        shutil.rmtree(tmp_path / "lift")
    shutil.rmtree(tmp_path / "whole/meta/episodes")
    with pytest.raises(DatasetError, match="0 episodes, meta/info.json says 4"):
        FORMAT.read(tmp_path / "whole")


def test_a_data_file_of_another_dataset_is_noticed(tmp_path, rich):
    FORMAT.write(rich, tmp_path / "lift")
    FORMAT.write(replace(rich, episodes=rich.episodes[::-1]), tmp_path / "other")
    shutil.copytree(tmp_path / "other/data", tmp_path / "lift/data", dirs_exist_ok=True)
    with pytest.raises(DatasetError, match="data/chunk-000/file-000.parquet: frames of episode 0 are not where meta/episodes says"):
        FORMAT.read(tmp_path / "lift")


def test_a_changed_number_in_a_table_is_noticed(tmp_path, rich):
    FORMAT.write(rich, tmp_path / "lift")
    path = tmp_path / "lift/data/chunk-000/file-000.parquet"
    content = path.read_bytes()
    actions = rich.episodes[0].actions[:2].tobytes()
    assert content.count(actions) == 1
    path.write_bytes(content.replace(actions, rich.episodes[0].actions[1::-1].tobytes()))
    with pytest.raises(DatasetError, match="file-000.parquet: truncated, damaged"):
        FORMAT.read(tmp_path / "lift")


def test_a_truncated_file_is_an_error_or_whole(tmp_path, rich):
    ours = tmp_path / "ours"
    FORMAT.write(replace(rich, episodes=rich.episodes[1:2]), ours)
    for folder in (ours, lerobot_made(tmp_path / "theirs")):
        whole = fingerprint(FORMAT.read(folder))
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            content = path.read_bytes()
            for size in sorted({0, 9, len(content) // 2, len(content) - 1}):
                path.write_bytes(content[:size])
                try:
                    assert fingerprint(FORMAT.read(folder)) == whole
                except DatasetError as error:
                    assert str(folder) in str(error)
                else:
                    # LeRobot's statistics and texts of tasks aren't read; an MP4 may end in bytes that nobody needs
                    assert path.name in ("stats.json", "tasks.parquet") or path.suffix == ".mp4"
            path.write_bytes(content)
