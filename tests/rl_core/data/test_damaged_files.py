"""Files that are cut short or have wrong bytes, and disks that are full."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from rl_core.contract import Channel
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats import read_dataset, write_dataset
from rl_core.data.recording import EpisodeWriter, finished_episodes, pack

DAMAGES = 60
ROOT = Path(__file__).parents[3]

# In a process of its own: the HDF5 library may crash or hang on a damaged file, which would end the tests.
READER = """
import signal, sys
from pathlib import Path
import numpy as np
from rl_core.data.episode import DatasetError
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats import read_dataset

dataset, file, damages = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
whole, right = file.read_bytes(), fingerprint(read_dataset(dataset))
rng = np.random.default_rng(0)
count = {"refused": 0, "unchanged": 0}
for number in range(2 * damages):
    place = int(rng.integers(len(whole)))
    data = bytearray(whole)
    if number % 2:
        data[place] ^= int(rng.integers(1, 256))
    else:
        del data[place:]
    file.write_bytes(data)
    signal.alarm(20)
    try:
        found = fingerprint(read_dataset(dataset))
    except DatasetError as error:
        assert file.name in str(error), error
        count["refused"] += 1
        continue
    assert found == right, f"another dataset was read: number {number}, byte {place} of {len(whole)}"
    count["unchanged"] += 1
print(count["refused"], count["unchanged"])
"""


@pytest.fixture
def pictured(make_episode: Callable[..., Episode], contract) -> Dataset:
    """Two episodes with pictures."""
    camera = Channel(name="front", kind="image", shape=(6, 8, 3), encoding="rgb8", row_order="top_down")
    rng = np.random.default_rng(0)
    episodes = []
    for seed in range(2):
        episode = make_episode(seed, 5)
        pictures = rng.integers(0, 256, (6, 6, 8, 3), dtype=np.uint8)
        ages = {"front": rng.integers(0, 9, 6)}
        observations = {**episode.observations, "front": pictures}
        episodes.append(replace(episode, observations=observations, observation_age_ns=ages))
    return Dataset(contract=replace(contract, observation=(*contract.observation, camera)), episodes=tuple(episodes))


@pytest.mark.parametrize("layout", ["an episode of a folder", "a packed file"])
def test_a_wrong_byte_or_a_cut_is_refused_and_never_another_number_or_a_crash(tmp_path: Path, pictured: Dataset, layout: str) -> None:
    if layout == "a packed file":
        dataset = file = write_dataset(pictured, tmp_path / "packed.hdf5")
    else:
        dataset = tmp_path / "folder"
        write_dataset(pictured, dataset, "folder")
        file = dataset / f"{pictured.episodes[1].uuid}.hdf5"
    arguments = [sys.executable, "-c", READER, str(dataset), str(file), str(DAMAGES)]
    reader = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    assert reader.returncode == 0, reader.stderr
    refused, unchanged = map(int, reader.stdout.split())
    # bytes between the objects of a file hold nothing; every cut is seen
    assert refused + unchanged == 2 * DAMAGES and unchanged < 0.3 * DAMAGES


def test_robomimics_own_scripts_may_still_add_to_a_file(tmp_path: Path, pictured: Dataset) -> None:
    """They write `mask/train` into the file itself, and read it while it is written to (SWMR)."""
    path = write_dataset(pictured, tmp_path / "packed.hdf5")
    with h5py.File(path, "r+") as file:
        file["mask/train"] = np.array([b"demo_0"])
    assert fingerprint(read_dataset(path)) == fingerprint(pictured)
    with h5py.File(path, "r", swmr=True, libver="latest") as file:
        assert json.loads(file["data"].attrs["env_args"])["type"] == 2
        np.testing.assert_array_equal(file["data/demo_1/obs/front"][()], pictured.episodes[1].observations["front"][:-1])


def test_texts_of_any_length_come_back(tmp_path: Path, make_dataset: Callable[..., Dataset]) -> None:
    dataset = make_dataset((3,))
    long = replace(dataset.episodes[0], meta={"note": "ü" * 100_000, "nothing": ""})
    dataset = Dataset(contract=dataset.contract, episodes=(long,))
    assert read_dataset(write_dataset(dataset, tmp_path / "long.hdf5")).episodes[0].meta == long.meta


@contextmanager
def no_room_for_more_than(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_is_full_ends_the_episode_with_an_error_and_keeps_the_rest(
    tmp_path: Path, contract, make_episode: Callable[..., Episode], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "recorded"
    writer = EpisodeWriter(folder, contract)
    writer.write(make_episode(0, 50))
    with (
        no_room_for_more_than(100_000),
        pytest.raises(DatasetError, match="lift-0-00001.hdf5: cannot be written.*before are whole"),
    ):
        writer.write(make_episode(1, 2000))

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched, pytest.raises(DatasetError, match="lift-0-00002.hdf5: cannot be written: .*No space left"):
        patched.setattr(os, "fsync", full)  # a disk may say so late
        writer.write(make_episode(2, 50))
    assert list(finished_episodes(folder)) == ["lift-0-00000"] and not list(folder.glob("*.part"))
    writer.write(make_episode(1, 50))
    assert [episode.uuid for episode in read_dataset(folder).episodes] == ["lift-0-00000", "lift-0-00001"]


def test_a_disk_that_is_full_leaves_the_older_packed_file(tmp_path: Path, contract, make_episode: Callable[..., Episode]) -> None:
    writer = EpisodeWriter(tmp_path / "recorded", contract)
    writer.write(make_episode(0, 50))
    packed = pack(tmp_path / "recorded", tmp_path / "packed.hdf5")
    before = packed.read_bytes()
    writer.write(make_episode(1, 2000))
    with no_room_for_more_than(100_000), pytest.raises(DatasetError, match="packed.hdf5: cannot be written"):
        pack(tmp_path / "recorded", packed)
    assert packed.read_bytes() == before and not list(tmp_path.glob("*.part"))
