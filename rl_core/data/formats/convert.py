"""From one format to another: losses are named before anything is written, and what was written is read back and compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rl_core.data.episode import Dataset, DatasetError, Episode
from rl_core.data.fingerprint import fingerprint
from rl_core.data.formats import FORMATS, NATIVE, find_format, format_named, locate, peek_contract, read_dataset
from rl_core.data.formats.base import FIELDS, Format, losses, used_fields
from rl_core.data.formats.lasa import PREFIX
from rl_core.data.formats.reader_notes import by_field, listening
from rl_core.data.staging import staged

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Written:
    """A dataset that lies on the disk, was read back, and holds what it should.

    Attributes:
        path: where it lies.
        format: name of its format.
        episodes: how many.
        steps: transitions over all of them.
        kept: names in `FIELDS`, of those that the dataset made use of.
        lost: the others of them -> what became of them.
        fingerprint: of what was read back; equal to the source's where nothing was lost.
        as_read: names in `FIELDS` that the source did not hold, or not so -> what the reader made of them.
    """

    path: Path
    format: str
    episodes: int
    steps: int
    kept: tuple[str, ...]
    lost: Mapping[str, str]
    fingerprint: str
    as_read: Mapping[str, str] = dataclasses.field(default_factory=dict)


def convert(
    source: str | Path,
    path: Path,
    *,
    format: str = "",
    allow_loss: Collection[str] = (),
    overwrite: bool = False,
    progress: Progress = lambda text: None,
) -> Written:
    """Reads `source`, whose format is found by its content, and writes it to `path`; see `save`.

    Raises:
        DatasetError: see `save`; or `source` cannot be read.
    """
    writer = choose_writer(path, format)
    require_place(path, overwrite=overwrite, sources=[source])
    contract = peek_contract(locate(source))
    if contract is not None:
        writer.check_contract(contract, path)
    progress(f"reading {source}")
    with listening() as heard:
        dataset = read_dataset(source)
    return dataclasses.replace(save(dataset, path, writer, allow_loss=allow_loss, progress=progress), as_read=by_field(heard))


def save(
    dataset: Dataset, path: Path, writer: Format, *, allow_loss: Collection[str] = (), progress: Progress = lambda text: None
) -> Written:
    """Writes `dataset` to `path`, reads it back and compares; what lies at `path` is replaced if all of that went well.

    Args:
        dataset: what to write.
        path: a file or folder; `require_place` says whether it may be replaced.
        writer: the format.
        allow_loss: the names of `FIELDS` that may be lost.
        progress: is told what is being done.

    Raises:
        DatasetError: a field that would be lost isn't named, the format cannot hold the dataset, or what was read back differs.
    """
    unknown = sorted(set(allow_loss) - set(FIELDS))
    if unknown:
        raise DatasetError(f"--allow-loss {' '.join(unknown)}: no such field, valid: {', '.join(FIELDS)}")
    writer.check_contract(dataset.contract, path)
    lost = losses(writer, dataset)
    refused = {name: text for name, text in lost.items() if name not in allow_loss}
    if refused:
        found = "; ".join(f"{name} ({text})" for name, text in refused.items())
        raise DatasetError(f"{path}: {writer.name} cannot hold {found}. To accept that, add --allow-loss {' '.join(refused)}")
    with staged(path) as part:
        progress(f"writing {path}")
        try:
            writer.write(dataset, part)
            progress(f"reading {path} back")
            back = writer.read(part)
        except DatasetError as error:
            # the place it was staged at is gone when this is read
            raise DatasetError(str(error).replace(str(part.resolve()), str(path)).replace(str(part), str(path))) from error
        _compare(without(dataset, writer.cannot_hold), without(back, writer.cannot_hold), path)
    used = used_fields(dataset)
    return Written(
        path=path,
        format=writer.name,
        episodes=len(back),
        steps=back.steps,
        kept=tuple(name for name in FIELDS if name in used and name not in lost),
        lost=lost,
        fingerprint=fingerprint(back),
    )


def choose_writer(path: Path, name: str = "") -> Format:
    """The format called `name`, or else the one that the ending of `path` says; the native one where it is among several.

    Raises:
        DatasetError: no format of that name or ending.
    """
    if name:
        return format_named(name)
    found = [format for format in FORMATS if path.suffix.lower() in format.extensions]
    for format in found:
        if len(found) == 1 or format.name == NATIVE:
            return format
    endings = ", ".join(sorted({ending or "a folder" for format in FORMATS for ending in format.extensions}))
    names = ", ".join(format.name for format in found or FORMATS)
    raise DatasetError(f"{path}: the ending {path.suffix!r} says no format, valid: {endings}; or name one with --format: {names}")


def require_place(path: Path, *, overwrite: bool, sources: Collection[str | Path] = ()) -> None:
    """Checks that a dataset made from `sources` may be written to `path`.

    Raises:
        DatasetError: it lies in a dataset; or something lies there that isn't a dataset, or a dataset and not `overwrite`, or one that
            is a source, or in which a source or anything else lies.
    """
    if str(path).startswith(PREFIX):
        raise DatasetError(f"{path}: names one of LASA's shapes, valid: a file or folder to write")
    for parent in path.absolute().parents:
        if parent.is_file():
            raise DatasetError(f"{path}: {parent} is a file, valid: a folder")
        if parent.is_dir() and any(format.matches(parent) for format in FORMATS):
            raise DatasetError(f"{path}: lies in the dataset {parent}, valid: a place outside of it")
    if not path.exists() or path.is_dir() and not any(path.iterdir()):
        return
    if not overwrite:
        raise DatasetError(f"{path}: exists already; a dataset is replaced with --overwrite")
    resolved = {str(source): Path(source).resolve() for source in sources}
    if path.resolve() in resolved.values():
        raise DatasetError(f"{path}: is the dataset that is read, so it is not replaced; valid: another place")
    inside = [source for source, place in resolved.items() if path.resolve() in place.parents]
    if inside:
        raise DatasetError(f"{path}: would be replaced, and {', '.join(inside)} in it; valid: another place")
    try:
        read_dataset(path)
    except DatasetError as error:
        raise DatasetError(f"{path}: is not a dataset that can be read, so it is not replaced ({error})") from error
    if path.is_dir():
        known = find_format(path).entries
        others = sorted(entry.name for entry in path.iterdir() if not any(entry.match(pattern) for pattern in known))
        if others:
            raise DatasetError(f"{path}: holds more than a dataset, {', '.join(others)}, so it is not replaced; valid: move them away")


def without(dataset: Dataset, fields: Collection[str]) -> Dataset:
    """The dataset with nothing in those of `FIELDS`, to compare two that need not be equal there."""
    images = [channel.name for channel in dataset.contract.observation if channel.kind == "image" and "pixels" in fields]
    contract = dataset.contract.select(channel.name for channel in dataset.contract.observation if channel.name not in images)
    return dataclasses.replace(
        dataset, contract=contract, episodes=tuple(_episode_without(episode, fields, images) for episode in dataset.episodes)
    )


def _episode_without(episode: Episode, fields: Collection[str], images: Collection[str]) -> Episode:
    observations = {name: np.asarray(values) for name, values in episode.observations.items() if name not in images}
    if "last_observation" in fields:
        observations = {name: np.concatenate([values[:-1], values[-2:-1]]) for name, values in observations.items()}
    if "precision" in fields:
        observations = {name: values.astype(np.float32) for name, values in observations.items()}
    changes: dict[str, Any] = {
        "uuid": {"uuid": ""},
        "stamps": {"stamps_ns": np.arange(len(episode) + 1)},
        "rewards": {"rewards": np.zeros(len(episode), np.float32)},
        "endings": {"terminal": False, "truncated": False},
        "success": {"success": None},
        "action_applied": {"action_applied": None},
        "observation_age": {"observation_age_ns": {}},
        "meta": {"meta": {}},
    }
    ages = {name: values for name, values in episode.observation_age_ns.items() if name not in images}
    result = dataclasses.replace(episode, observations=observations, observation_age_ns=ages)
    for name in fields:
        result = dataclasses.replace(result, **changes.get(name, {}))
    return result


def _compare(wanted: Dataset, found: Dataset, path: Path) -> None:
    if fingerprint(wanted) == fingerprint(found):
        return
    differ = [
        one.uuid
        for one, other in zip(wanted.episodes, found.episodes, strict=False)
        if fingerprint(dataclasses.replace(wanted, episodes=(one,))) != fingerprint(dataclasses.replace(wanted, episodes=(other,)))
    ]
    raise DatasetError(
        f"{path}: what was read back differs from what was written, so nothing is kept: contracts equal: "
        f"{wanted.contract == found.contract}, {len(wanted)} and {len(found)} episodes, of which differ: {differ}"
    )
