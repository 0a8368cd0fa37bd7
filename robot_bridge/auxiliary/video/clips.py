"""ClipData: clips with sentences in memory, and the folder of shards they are kept in.

A folder holds `clips.json` (format, version, how they were made) and `clips-*.npz`, each of which is whole: frames, lengths, meanings,
ordered, groups, and sentences as JSON. Arrays are plain: nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.data.atomic import write_atomically
from robot_bridge.auxiliary.video.errors import VideoError

HEADER, FORMAT, VERSION = "clips.json", "armstack-clips", 1
_PREFIX = "clips-"


@dataclass(frozen=True, kw_only=True)
class ClipData:
    """n clips.

    Attributes:
        frames: (n, F, H, W, 3) uint8, RGB, first row on top; what lies behind a clip's length repeats its last frame.
        lengths: (n,) int64, frames of each clip, 1..F.
        sentences: n tuples: ways to say what happens, at least one.
        meanings: n; clips of equal meaning are equally right answers.
        groups: (n,) int64: clips of one group are of the same things, e.g. a clip and its twin.
        ordered: (n,) bool, whether a clip differs from another one of its group in the order of events alone.
    """

    frames: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    sentences: tuple[tuple[str, ...], ...]
    meanings: tuple[str, ...]
    groups: NDArray[np.int64]
    ordered: NDArray[np.bool_]

    def __post_init__(self) -> None:
        count = len(self.frames)
        if self.frames.ndim != 5 or self.frames.shape[-1] != 3 or self.frames.dtype != np.uint8 or not count:
            raise VideoError(f"frames of type {self.frames.dtype} and shape {self.frames.shape}; valid: uint8 (n, F, H, W, 3), n above 0")
        for name in ("lengths", "sentences", "meanings", "groups", "ordered"):
            if len(getattr(self, name)) != count:
                raise VideoError(f"{name}: {len(getattr(self, name))} values for {count} clips; valid: one a clip")
        if self.lengths.min() < 1 or self.lengths.max() > self.frames.shape[1]:
            raise VideoError(f"lengths {self.lengths.min()}..{self.lengths.max()}; valid: 1..{self.frames.shape[1]} frames")
        if not all(self.sentences):
            raise VideoError(f"clip {next(i for i, said in enumerate(self.sentences) if not said)}: no sentence; valid: one or more a clip")

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """(n, F) which frames are real."""
        return np.arange(self.frames.shape[1]) < self.lengths[:, None]

    def fingerprint(self) -> str:
        """sha256 of pictures and sentences."""
        digest = hashlib.sha256(np.ascontiguousarray(self.frames).data)
        digest.update(json.dumps([self.lengths.tolist(), self.sentences]).encode())
        return digest.hexdigest()


def write_header(folder: Path, made_from: Mapping[str, Any]) -> None:
    """Writes the header; `made_from` (JSON) says how the clips came about."""
    folder.mkdir(parents=True, exist_ok=True)
    with write_atomically(folder / HEADER) as file:
        file.write((json.dumps({"format": FORMAT, "version": VERSION, "made_from": made_from}, indent=1, sort_keys=True) + "\n").encode())


def read_header(folder: Path) -> dict[str, Any]:
    """How the clips of a folder came about.

    Raises:
        VideoError: no header, or none of this version.
    """
    try:
        header = json.loads((folder / HEADER).read_text())
        found = header["format"], header["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise VideoError(f"{folder / HEADER}: not readable: {error!r}; valid: what `armstack aux data tempme` writes") from error
    if found != (FORMAT, VERSION):
        raise VideoError(f"{folder / HEADER}: format and version {found}; this Armstack reads {(FORMAT, VERSION)}")
    return dict(header["made_from"])


def shard_file(folder: Path, number: int) -> Path:
    """Where a shard lies."""
    return folder / f"{_PREFIX}{number:04d}.npz"


def write_shard(data: ClipData, file: Path) -> None:
    """Writes clips as one shard, whole or not at all."""
    with write_atomically(file) as target:
        np.savez_compressed(
            target, frames=data.frames, lengths=data.lengths, groups=data.groups, ordered=data.ordered,
            meanings=np.array(data.meanings, np.str_), sentences=np.array([json.dumps(said) for said in data.sentences], np.str_),
        )  # fmt: skip


def read_shards(folder: Path) -> ClipData:
    """All shards of a folder, in the order of their names.

    Raises:
        VideoError: no shards, a damaged one, fewer clips than were made, or clips of different sizes; names the file.
    """
    wanted = read_header(folder).get("clips")
    files = sorted(folder.glob(f"{_PREFIX}*.npz"))
    if not files:
        raise VideoError(f"{folder}: {HEADER} is there, but no {_PREFIX}*.npz; make the data again, what is finished is kept")
    shards = list(_read(files))
    if (found := sum(len(shard["frames"]) for shard in shards)) != wanted and isinstance(wanted, int):
        raise VideoError(
            f"{folder}: its {_PREFIX}*.npz hold {found} clips, {HEADER} says {wanted}; make the data again with the same settings, "
            "what is there is kept"
        )
    return ClipData(
        frames=np.concatenate([shard["frames"] for shard in shards]),
        lengths=np.concatenate([shard["lengths"] for shard in shards]).astype(np.int64),
        sentences=tuple(tuple(json.loads(str(said))) for shard in shards for said in shard["sentences"]),
        meanings=tuple(str(meaning) for shard in shards for meaning in shard["meanings"]),
        groups=np.concatenate([shard["groups"] for shard in shards]).astype(np.int64),
        ordered=np.concatenate([shard["ordered"] for shard in shards]).astype(np.bool_),
    )


def _read(files: list[Path]) -> Iterator[dict[str, NDArray[Any]]]:
    shape: tuple[int, ...] = ()
    for file in files:
        try:
            with np.load(file, allow_pickle=False) as arrays:
                shard = {name: arrays[name] for name in ("frames", "lengths", "groups", "ordered", "meanings", "sentences")}
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
            raise VideoError(f"{file}: not readable: {error}; delete it and make the data again, the other shards are kept") from error
        shape = shape or shard["frames"].shape[1:]
        if shard["frames"].shape[1:] != shape:
            raise VideoError(f"{file}: clips of shape {shard['frames'].shape[1:]}, others of {shape}; valid: all alike")
        yield shard
