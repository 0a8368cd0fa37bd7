"""Recordings of a folder as films: bags (MCAP, rosbag2) by their Image topics, datasets of any known format by their image channels."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Channel, RobotContract
from rl_core.data.annotations import LANG
from rl_core.data.episode import Episode
from rl_core.data.formats import FORMATS
from rl_core.data.formats.bag_stream import METADATA_FILE
from rl_core.strap.corpus import list_demos, read_demos
from robot_bridge.auxiliary.video.bag_films import bag_films
from robot_bridge.auxiliary.video.errors import VideoError
from robot_bridge.auxiliary.video.film import Film, Unread

BAG, LASA = "mcap", "lasa"
_PARTS = (".db3", ".db3.zstd", ".mcap.zstd")
"""Files that rosbag2 reads by its metadata alone."""
_PIECE = 1 << 20


def find_recordings(folder: Path) -> list[Path]:
    """Bags and datasets in a folder, at any depth, or the one that it is; what several links lead to is there once.

    What can only be a recording and cannot be read is there as well, and `films` says why: a link to what is gone, a part of a
    bag whose recorder was killed.

    Raises:
        VideoError: no such folder, or nothing in it that is known.
    """
    if not folder.exists():
        raise VideoError(f"{folder}: no such file or folder")
    found = sorted(_recordings(folder, set()))
    if not found:
        valid = "; ".join(f"{known.name}: {known.layout}" for known in FORMATS if known.name != LASA)
        raise VideoError(f"{folder}: no recordings; valid: bags or datasets ({valid})")
    return found


def content_hash(recording: Path) -> str:
    """sha256 over names and bytes of a recording's files."""
    digest = hashlib.sha256()
    for file in files_of(recording):
        digest.update(file.relative_to(recording).as_posix().encode() + b"\0")
        with open(file, "rb") as source:
            while piece := source.read(_PIECE):
                digest.update(piece)
    return digest.hexdigest()


def files_of(recording: Path) -> list[Path]:
    """The file itself, or all files of the folder."""
    return [recording] if recording.is_file() else sorted(file for file in recording.rglob("*") if file.is_file())


def films(recording: Path, period_ns: int = 0, unread: Unread | None = None) -> Iterator[Film]:
    """The films of a recording.

    Args:
        recording: of `find_recordings`.
        period_ns: of a bag, time between two pictures that are kept; 0 keeps all. Datasets are in memory anyway.
        unread: is told what of it became no film.

    Raises:
        VideoError: a link to what is gone, or a part of a bag.
        DatasetError: it cannot be read; names the file.
    """
    if not recording.exists():
        raise VideoError(f"{recording}: a link to {recording.readlink()}, which is not there")
    if _is_part(recording):
        written = f"{METADATA_FILE}, which `ros2 bag reindex` writes where a recorder was killed"
        raise VideoError(f"{recording}: part of a bag; valid: its folder, with {written}")
    if is_bag(recording):
        yield from bag_films(recording, period_ns, unread or Unread())
        return
    for demo, episode, contract in read_demos(list_demos(recording)):
        yield from episode_films(episode, contract, recording, demo.name)


def episode_films(episode: Episode, contract: RobotContract, source: Path, name: str) -> Iterator[Film]:
    """A film for each of the episode's image channels."""
    for channel in contract.observation:
        if channel.kind == "image" and channel.name in episode.observations:
            frames = np.asarray(episode.observations[channel.name])
            yield Film(
                source=source, episode=name, camera=channel.name, stamps_ns=np.asarray(episode.stamps_ns, np.int64),
                frames=upright(frames, channel), lang=str(episode.meta.get(LANG, "")),
            )  # fmt: skip


def upright(frames: NDArray[Any], channel: Channel) -> NDArray[np.uint8]:
    """(T, H, W, 3) RGB of an image channel's frames, first row on top."""
    rows = frames[:, ::-1] if channel.row_order == "bottom_up" else frames
    return np.repeat(rows, 3, axis=-1) if rows.shape[-1] == 1 else rows


def is_bag(path: Path) -> bool:
    """An MCAP file, by its content, or a folder of rosbag2."""
    return _format(path) == BAG if path.is_file() else (path / METADATA_FILE).is_file()


def _format(path: Path) -> str:
    """Name of the file's or folder's format; empty for none that has pictures."""
    otherwise = BAG if path.suffix == ".mcap" else ""  # it may not be opened
    return next((known.name for known in FORMATS if known.name != LASA and known.matches(path)), otherwise)


def _is_part(path: Path) -> bool:
    return path.name.endswith(_PARTS) and path.is_file()


def _recordings(path: Path, visited: set[str]) -> Iterator[Path]:
    place = os.path.realpath(path)
    if path.name.startswith(".") or place in visited:
        return
    visited.add(place)
    gone = path.is_symlink() and not os.path.lexists(place)
    # A folder of MCAP files alone may hold many bags as well as one without its metadata, so each is taken by itself.
    if gone or _is_part(path) or is_bag(path) or _format(path) not in ("", BAG):
        yield path
    elif path.is_dir():
        for inside in sorted(path.iterdir(), key=lambda inside: (inside.is_symlink(), inside)):  # its own place before a link to it
            yield from _recordings(inside, visited)
