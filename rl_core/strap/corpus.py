"""Corpora: many datasets of which one demonstration at a time is in memory."""

from __future__ import annotations

import dataclasses
import functools
import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rl_core.contract import RobotContract
from rl_core.data.annotations import LANG
from rl_core.data.demo_layout import demo_names, read_contract, read_demo
from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.formats import FORMATS, find_format, read_dataset
from rl_core.data.hdf5 import is_hdf5, open_hdf5, parse_json
from rl_core.data.recording import DATASET_FILE, finished_episodes, read_episode, read_folder_contract

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Demo:
    """One demonstration of a corpus: the dataset it is in, its name there (`demo_3`, an episode's uuid), and the file that holds it."""

    source: Path
    name: str
    file: Path

    @property
    def stamp(self) -> list[int]:
        """Size and time of change of the file: another stamp may mean another content."""
        found = self.file.stat()
        return [found.st_size, found.st_mtime_ns]


def find_datasets(paths: Iterable[Path]) -> list[Path]:
    """The datasets at `paths`: each is one itself, or a folder with datasets in it, at any depth.

    Raises:
        DatasetError: nothing there that can be read.
    """
    found: list[Path] = []
    for path in paths:
        inside = [path] if any(format.matches(path) for format in FORMATS) else []
        if not inside and path.is_dir():
            folders = {file.parent for file in path.rglob(DATASET_FILE)}
            files = {file for file in path.rglob("*.hdf5") if file.parent not in folders}
            inside = sorted(folders | files)
        if not inside:
            raise DatasetError(f"{path}: no dataset; valid: a dataset, or a folder with HDF5 files or recorded folders in it")
        found += inside
    return list(dict.fromkeys(found))


def demo_at(source: Path, name: str) -> Demo:
    """The demonstration of that name in the dataset `source`."""
    return Demo(source=source, name=name, file=source / f"{name}.hdf5" if source.is_dir() else source)


def read_target(path: Path) -> Dataset:
    """The dataset at `path`, whole, its demonstrations read as those of a corpus are.

    Raises:
        DatasetError: it cannot be read, or holds no finished demonstration.
    """
    demos = list_demos(path) if path.exists() else []
    if not demos:
        find_format(path)
        raise DatasetError(f"{path}: holds no finished demonstration")
    read = [read_corpus_demo(demo) for demo in demos]
    return Dataset(contract=read[0][1], episodes=tuple(episode for episode, _ in read), source=str(path))


def list_demos(source: Path) -> list[Demo]:
    """The demonstrations of one dataset, in its order."""
    if (source / DATASET_FILE).is_file():
        return [demo_at(source, uuid) for uuid in finished_episodes(source)]
    if is_hdf5(source):
        with open_hdf5(source) as file:
            if "data" in file:
                return [demo_at(source, name) for name in demo_names(file["data"])]
    return [demo_at(source, f"demo_{index}") for index in range(len(_read_whole(source)))]


def read_demos(demos: Iterable[Demo]) -> Iterator[tuple[Demo, Episode, RobotContract]]:
    """Every demonstration with what its numbers mean, one in memory at a time (of formats other than ours, one dataset)."""
    for demo in demos:
        yield demo, *read_corpus_demo(demo)


def read_corpus_demo(demo: Demo) -> tuple[Episode, RobotContract]:
    """The demonstration, and the contract of its dataset.

    Raises:
        DatasetError: it is gone, or damaged.
    """
    if (demo.source / DATASET_FILE).is_file():
        contract = read_folder_contract(demo.source)
        return read_episode(demo.file, contract), contract
    if is_hdf5(demo.source):
        with open_hdf5(demo.source) as file:
            if "data" in file and "contract" in file["data"].attrs:
                if demo.name not in file["data"]:
                    raise DatasetError(f"{demo.source}: no {demo.name}; found {demo_names(file['data'])[:5]}")
                contract = read_contract(file["data"])
                return read_demo(file["data"][demo.name], contract), contract
    dataset = _read_whole(demo.source)
    names = [each.name for each in list_demos(demo.source)]
    if demo.name not in names:
        raise DatasetError(f"{demo.source}: no {demo.name}; found {names[:5]}")
    return dataset.episodes[names.index(demo.name)], dataset.contract


@functools.lru_cache(maxsize=1)
def _read_whole(source: Path) -> Dataset:
    find_format(source)
    dataset = read_dataset(source)
    task = _libero_task(source) if is_hdf5(source) else None
    if task is None:
        return dataset
    # LIBERO keeps the task beside the demonstrations, and pictures as OpenGL gives them: the first row is the bottom
    logger.info("%s: a file of LIBERO: its pictures are upside down, its task is %r", source, task)
    channels = [dataclasses.replace(c, row_order="bottom_up") if c.kind == "image" else c for c in dataset.contract.observation]
    episodes = [dataclasses.replace(episode, meta={LANG: task, **episode.meta}) for episode in dataset.episodes]
    contract = dataclasses.replace(dataset.contract, observation=tuple(channels))
    return dataclasses.replace(dataset, contract=contract, episodes=tuple(episodes))


def _libero_task(source: Path) -> str | None:
    with open_hdf5(source) as file:
        data = file.get("data")
        if data is None or "problem_info" not in data.attrs:
            return None
        where = f"{source}: attribute 'problem_info'"
        words = parse_json(data.attrs["problem_info"], where).get("language_instruction")
    if isinstance(words, list):
        words = "".join(map(str, words))
    if not isinstance(words, str) or not words:
        raise DatasetError(f"{where} has language_instruction {json.dumps(words)}, valid: the task in words")
    return words.strip().strip('"')
