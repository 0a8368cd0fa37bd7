import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats import read_dataset, write_dataset
from rl_core.data.recording import EpisodeWriter, finished_episodes, missing_episodes, pack

RECORDER = """
import os, sys, time
import numpy as np
from rl_core.contract import RobotContract
from rl_core.data.episode import Episode
from rl_core.data.recording import EpisodeWriter

folder, contract = sys.argv[1], RobotContract.from_json(sys.argv[2])
writer = EpisodeWriter(folder, contract)
for k in range(4):
    steps = 50
    episode = Episode(
        observations={c.name: np.full((steps + 1, c.size), k, np.float32) for c in contract.observation},
        actions=np.zeros((steps, contract.action.size), np.float32), rewards=np.zeros(steps, np.float32), terminal=False, truncated=True,
        stamps_ns=np.arange(steps + 1) * 50_000_000, uuid=f"episode-{k}",
    )
    if k == 3:  # its data are in the file, its end isn't on the disk yet
        os.fsync = lambda descriptor: (print("in the middle", flush=True), time.sleep(600))
    writer.write(episode)
"""


def test_recorder_killed_in_the_middle_leaves_finished_episodes_and_reopening_appends(tmp_path, contract, make_episode):
    folder = tmp_path / "recorded"
    recorder = subprocess.Popen(
        [sys.executable, "-c", RECORDER, str(folder), contract.to_json()], stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    assert recorder.stdout is not None and recorder.stdout.readline().strip() == b"in the middle"
    # a second recorder may open the folder meanwhile: the part of a living one stays
    EpisodeWriter(folder, contract)
    assert (folder / "episode-3.hdf5.part").is_file()
    os.kill(recorder.pid, signal.SIGKILL)
    recorder.wait()
    assert list(finished_episodes(folder)) == ["episode-0", "episode-1", "episode-2"]
    assert [episode.uuid for episode in read_dataset(folder).episodes] == ["episode-0", "episode-1", "episode-2"]
    writer = EpisodeWriter(folder, contract)
    assert not list(folder.glob("*.part"))
    writer.write(make_episode(3, uuid="episode-3"))
    assert list(finished_episodes(folder)) == [f"episode-{k}" for k in range(4)]
    assert len(read_dataset(folder)) == 4


def test_folder_pack_and_copy_keep_every_number(tmp_path, make_dataset):
    dataset = make_dataset((6, 3, 9))
    applied = dataset.episodes[1].actions * 0.5
    filtered = replace(dataset.episodes[1], action_applied=applied, success=None)
    dataset = replace(dataset, episodes=(dataset.episodes[0], filtered, dataset.episodes[2]))
    writer = EpisodeWriter(tmp_path / "folder", dataset.contract)
    for episode in reversed(dataset.episodes):  # the order of writing doesn't count
        writer.write(episode)
    folder = read_dataset(tmp_path / "folder")
    packed = read_dataset(pack(tmp_path / "folder", tmp_path / "packed.hdf5"))
    written = read_dataset(write_dataset(dataset, tmp_path / "written.hdf5"))
    assert fingerprint(folder) == fingerprint(packed) == fingerprint(written) == fingerprint(dataset)
    assert folder.contract == dataset.contract
    episode = packed.episodes[1]
    np.testing.assert_array_equal(episode.action_applied, applied)
    np.testing.assert_array_equal(episode.observations["cube_pos"], dataset.episodes[1].observations["cube_pos"])
    assert episode.stamps_ns.dtype == np.int64 and episode.success is None and episode.meta == {"seed": 1}
    assert packed.episodes[2].terminal and not packed.episodes[2].truncated


def test_fingerprint_sees_every_change(make_dataset):
    dataset = make_dataset()
    seen = {fingerprint(dataset)}
    first = dataset.episodes[0]
    actions = first.actions.copy()
    actions[0, 0] += 1e-6
    stamps = first.stamps_ns.copy()
    stamps[-1] += 1
    observations = {**first.observations, "cube_pos": first.observations["cube_pos"] + np.float32(1e-3)}
    for change in (
        {"actions": actions},
        {"stamps_ns": stamps},
        {"observations": observations},
        {"success": None},
        {"uuid": "x"},
        {"terminal": False},
    ):
        seen.add(fingerprint(replace(dataset, episodes=(replace(first, **change), *dataset.episodes[1:]))))
    seen.add(fingerprint(replace(dataset, episodes=dataset.episodes[::-1])))
    seen.add(fingerprint(replace(dataset, contract=replace(dataset.contract, robot="other"))))
    assert len(seen) == 9
    assert fingerprint(replace(dataset, source="elsewhere")) in seen


def test_folder_of_another_contract_or_with_the_same_uuid_is_refused(tmp_path, contract, make_episode):
    writer = EpisodeWriter(tmp_path, contract)
    writer.write(make_episode(0))
    with pytest.raises(DatasetError, match="already an episode"):
        writer.write(make_episode(0))
    with pytest.raises(DatasetError, match="contracts differ"):
        EpisodeWriter(tmp_path, replace(contract, robot="other"))
    with pytest.raises(DatasetError, match="valid: letters"):
        writer.write(make_episode(1, uuid="../elsewhere"))
    with pytest.raises(DatasetError, match="channels \\['cube_pos'\\] missing"):
        episode = make_episode(1)
        writer.write(replace(episode, observations={n: v for n, v in episode.observations.items() if n != "cube_pos"}))
    assert list(finished_episodes(tmp_path)) == ["lift-0-00000"] and not list(tmp_path.glob("*.part"))


def test_damaged_episode_or_header_is_a_dataset_error_that_names_it(tmp_path, contract, make_episode):
    writer = EpisodeWriter(tmp_path, contract)
    files = [writer.write(make_episode(seed, 200)) for seed in range(2)]
    whole = files[1].read_bytes()
    files[1].write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatasetError, match=files[1].name):
        read_dataset(tmp_path)
    files[1].unlink()
    write_dataset(Dataset(contract=replace(contract, robot="other"), episodes=(make_episode(5),)), files[1])
    with pytest.raises(DatasetError, match="contract differs"):
        read_dataset(tmp_path)
    with h5py.File(files[1], "w") as file:
        file["unrelated"] = [1]
    with pytest.raises(DatasetError, match="data/demo_0/stamps_ns is missing; found \\['unrelated'\\]"):
        read_dataset(tmp_path)
    (tmp_path / "dataset.json").write_text(json.dumps({"format_version": 99, "contract": {}}))
    with pytest.raises(DatasetError, match="format_version 99"):
        read_dataset(tmp_path)
    (tmp_path / "dataset.json").unlink()
    with pytest.raises(DatasetError, match="no known dataset format; valid: folder: a folder with dataset.json"):
        read_dataset(tmp_path)


def test_an_episode_whose_file_was_deleted_is_named(tmp_path, contract, make_episode, caplog):
    writer = EpisodeWriter(tmp_path, contract)
    files = [writer.write(make_episode(seed)) for seed in range(4)]
    assert len(read_dataset(tmp_path)) == 4 and not caplog.text
    files[1].unlink()
    files[2].unlink()
    assert [episode.uuid for episode in read_dataset(tmp_path).episodes] == ["lift-0-00000", "lift-0-00003"]
    assert f"{tmp_path}: of 4 recorded episodes 2 are gone: lift-0-00001, lift-0-00002; if that was meant" in caplog.text
    EpisodeWriter(tmp_path, contract).write(make_episode(1))
    assert missing_episodes(tmp_path) == ["lift-0-00002"]
    index = tmp_path / "episodes.txt"
    index.write_text("".join(line for line in index.read_text().splitlines(keepends=True) if "00002" not in line))
    caplog.clear()
    assert len(read_dataset(tmp_path)) == 3 and not caplog.text


@pytest.mark.parametrize("cut", [0, 1, 5, 14, 20])
def test_a_crash_between_an_episode_and_its_line_is_harmless(tmp_path, contract, make_episode, caplog, cut):
    writer = EpisodeWriter(tmp_path, contract)
    writer.write(make_episode(0))
    index = tmp_path / "episodes.txt"
    size = index.stat().st_size
    writer.write(make_episode(1))
    index.write_bytes(index.read_bytes()[: size + cut])
    EpisodeWriter(tmp_path, contract).write(make_episode(2))
    assert len(read_dataset(tmp_path)) == 3 and not caplog.text
    (tmp_path / "lift-0-00002.hdf5").unlink()
    assert missing_episodes(tmp_path) == ["lift-0-00002"]


def test_an_index_that_cannot_be_written_costs_no_episode(tmp_path, contract, make_episode, caplog):
    (tmp_path / "folder" / "episodes.txt").mkdir(parents=True)
    EpisodeWriter(tmp_path / "folder", contract).write(make_episode(0))
    assert "episodes.txt: cannot be written" in caplog.text
    assert len(finished_episodes(tmp_path / "folder")) == 1
