"""Recordings of a folder as films: bags (MCAP, rosbag2) by their Image topics, datasets of any known format by their image channels.

A film is what one camera saw in one episode. A bag names no episodes: a new one begins where its stamps go back.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from rl_core.contract import Channel, RobotContract
from rl_core.data.annotations import LANG
from rl_core.data.episode import Episode
from rl_core.data.formats import FORMATS
from rl_core.data.formats.bag_stream import METADATA_FILE, BagReader
from rl_core.data.formats.bag_values import header_stamp_ns, picture
from rl_core.strap.corpus import list_demos, read_demos
from robot_bridge.auxiliary.video.errors import VideoError

logger = logging.getLogger(__name__)

BAG, LASA = "mcap", "lasa"
_IMAGE, _COMPRESSED = "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"
_PIECE = 1 << 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Film:
    """What one camera saw.

    Attributes:
        source: file or folder it is from.
        episode: name in there; of a bag its number, empty where there is one alone.
        camera: channel or topic.
        stamps_ns: (T,) int64, rising.
        frames: T pictures (H, W, 3) uint8, RGB, first row on top.
        lang: what was done, in words; empty where nobody said.
    """

    source: Path
    episode: str
    camera: str
    stamps_ns: NDArray[np.int64]
    frames: list[NDArray[np.uint8]] | NDArray[np.uint8]
    lang: str = ""


def find_recordings(folder: Path) -> list[Path]:
    """Bags and datasets in a folder, at any depth, or the one that it is; what several links lead to is there once.

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


def films(recording: Path, period_ns: int = 0) -> Iterator[Film]:
    """The films of a recording.

    Args:
        recording: of `find_recordings`.
        period_ns: of a bag, time between two pictures that are kept; 0 keeps all. Datasets are in memory anyway.

    Raises:
        DatasetError: it cannot be read; names the file.
    """
    if is_bag(recording):
        yield from _bag_films(recording, period_ns)
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
    """An MCAP file, or a folder of rosbag2."""
    return path.suffix == ".mcap" if path.is_file() else (path / METADATA_FILE).is_file()


def _recordings(path: Path, visited: set[str]) -> Iterator[Path]:
    place = os.path.realpath(path)
    if path.name.startswith(".") or place in visited:
        return
    visited.add(place)
    if is_bag(path) or any(known.name not in (BAG, LASA) and known.matches(path) for known in FORMATS):
        yield path
    elif path.is_dir():
        for inside in sorted(path.iterdir(), key=lambda inside: (inside.is_symlink(), inside)):  # its own place before a link to it
            yield from _recordings(inside, visited)


def _bag_films(bag: Path, period_ns: int) -> Iterator[Film]:
    reader = BagReader(bag)
    stamps: dict[str, list[int]] = {}
    frames: dict[str, list[NDArray[np.uint8]]] = {}
    sent: dict[str, list[int]] = {}
    for message in reader.messages():
        if message.type not in (_IMAGE, _COMPRESSED):
            continue
        # Most pictures are left out, so the time of sending decides before anything is decoded.
        if message.topic in sent and message.sent_ns - sent[message.topic][-1] < period_ns:
            continue
        decoded = reader.types.decode(message)
        frame = _pixels(decoded, f"{bag}: topic {message.topic}")
        if frame is not None:
            stamp_ns = header_stamp_ns(decoded)
            stamps.setdefault(message.topic, []).append(message.sent_ns if stamp_ns is None else stamp_ns)
            sent.setdefault(message.topic, []).append(message.sent_ns)
            frames.setdefault(message.topic, []).append(frame)
    if reader.damage:
        logger.warning("%s: %s; what lies before is taken", bag, reader.damage)
    for topic, pictures in frames.items():
        times = np.array(stamps[topic] if any(stamps[topic]) else sent[topic], np.int64)  # some drivers never set the stamp
        ends = [0, *(np.flatnonzero(np.diff(times) < 0) + 1).tolist(), len(times)]  # simulated time began anew: another episode
        for number, (first, last) in enumerate(pairwise(ends)):
            episode = str(number) if len(ends) > 2 else ""
            yield Film(source=bag, episode=episode, camera=topic, stamps_ns=times[first:last], frames=pictures[first:last])


def _pixels(message: Any, where: str) -> NDArray[np.uint8] | None:
    """RGB of an Image or CompressedImage; None for what is no colour or grey picture (a depth map)."""
    if hasattr(message, "step"):
        if message.encoding not in ("rgb8", "bgr8", "rgba8", "bgra8", "mono8"):
            return None
        shape = (int(message.height), int(message.width), 3)
        return picture(message, Channel(name="picture", kind="image", shape=shape, encoding="rgb8", row_order="top_down"), where=where)
    try:
        return np.asarray(Image.open(io.BytesIO(bytes(message.data))).convert("RGB"))
    except (UnidentifiedImageError, OSError):
        return None
