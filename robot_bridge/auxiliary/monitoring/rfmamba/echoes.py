"""Recorded echoes, as a value and on disk: `echoes.npz` and `radar.json` in a folder. Windows, background, split by person."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.data.atomic import write_atomically
from rl_core.errors import ContractError
from robot_bridge.auxiliary.monitoring.rfmamba.interface import JOINTS, RadarError, RadarGeometry

HEADER, ARRAYS = "radar.json", "echoes.npz"
FORMAT, VERSION = "armstack-radar", 1
_TYPES = {
    "echoes": np.complex64,
    "backgrounds": np.complex64,
    "joints": np.float32,
    "activity": np.int64,
    "body": np.bool_,
    "people": np.int64,
    "behind_wall": np.bool_,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Recordings:
    """R recordings of T frames.

    Attributes:
        geometry: of the radar; its `frames` is T.
        activities: names.
        echoes: (R, T, tx, rx, F) complex64, as measured.
        backgrounds: (R, tx, rx, F), mean echo of the cell with nobody in it.
        joints: (R, T, 14, 3) float32, metres in the arm's base frame.
        activity: (R, T), index in `activities`.
        body: (R, T, tx, rx, F) bool: range bins with a part of the person in them; see `interface.Person.body`.
        people: (R,) who it is.
        behind_wall: (R,).
    """

    geometry: RadarGeometry
    activities: tuple[str, ...]
    echoes: NDArray[np.complex64]
    backgrounds: NDArray[np.complex64]
    joints: NDArray[np.float32]
    activity: NDArray[np.int64]
    body: NDArray[np.bool_]
    people: NDArray[np.int64]
    behind_wall: NDArray[np.bool_]

    def __post_init__(self) -> None:
        count, shape = len(self.echoes), self.geometry.shape
        expected: dict[str, tuple[int, ...]] = {
            "echoes": (count, *shape),
            "backgrounds": (count, *shape[1:]),
            "joints": (count, shape[0], len(JOINTS), 3),
            "activity": (count, shape[0]),
            "body": (count, *shape),
            "people": (count,),
            "behind_wall": (count,),
        }
        for name, dtype in _TYPES.items():
            found = getattr(self, name)
            if found.shape != expected[name] or found.dtype != dtype:
                raise RadarError(f"recordings.{name}: {found.dtype} {found.shape}, valid: {np.dtype(dtype)} {expected[name]}")
            if found.dtype.kind in "cf" and not np.isfinite(found).all():
                raise RadarError(f"recordings.{name}: NaN or infinity, valid: finite numbers")
        if not count or self.activity.min() < 0 or self.activity.max() >= len(self.activities):
            raise RadarError(f"recordings.activity: {count} recordings, valid: one or more, of activities 0..{len(self.activities) - 1}")

    def __len__(self) -> int:
        return len(self.echoes)

    def rows(self, chosen: NDArray[Any] | Sequence[int]) -> Recordings:
        """Only these recordings; indices or a mask."""
        return dataclasses.replace(self, **{name: getattr(self, name)[chosen] for name in _TYPES})

    def split(self, shares: Sequence[float], seed: int) -> tuple[Recordings, ...]:
        """Parts without a person in common.

        Args:
            shares: of the people, 1 in all.
            seed: of who is where.

        Raises:
            RadarError: fewer people than parts.
        """
        who = np.unique(self.people)
        if len(who) < len(shares):
            raise RadarError(f"recordings of {len(who)} people, valid: {len(shares)} or more to be split by person")
        order = np.random.default_rng(seed).permutation(who)
        cuts = np.clip(np.rint(np.cumsum(shares[:-1]) * len(who)).astype(int), 1, len(who) - 1)
        return tuple(self.rows(np.isin(self.people, part)) for part in np.split(order, cuts))

    def windows(self, frames: int, current: int) -> Windows:
        """All windows of so many successive frames, without the background.

        Raises:
            RadarError: longer windows than recordings.
        """
        length = self.geometry.frames
        if not 0 < frames <= length:
            longer = f"longer ones: `armstack aux data rfmamba --frames {frames}`"
            raise RadarError(f"windows of {frames} frames, valid: 1..{length}, the recordings' length; {longer}")
        moving = self.echoes - self.backgrounds[:, None]
        starts = np.arange(length - frames + 1)
        cut = moving[:, starts[:, None] + np.arange(frames)].reshape(-1, frames, *self.geometry.shape[1:])
        at = starts + current
        return Windows(
            geometry=dataclasses.replace(self.geometry, frames=frames),
            activities=self.activities,
            echoes=cut,
            joints=self.joints[:, at].reshape(-1, len(JOINTS), 3),
            activity=self.activity[:, at].reshape(-1),
            body=self.body[:, at].reshape(-1, *self.geometry.shape[1:]),
            behind_wall=np.repeat(self.behind_wall, len(starts)),
        )


def joined(parts: Sequence[Recordings]) -> Recordings:
    """Recordings of one radar, one after the other."""
    return dataclasses.replace(parts[0], **{name: np.concatenate([getattr(part, name) for part in parts]) for name in _TYPES})


@dataclass(frozen=True, kw_only=True, eq=False)
class Windows:
    """n windows and what is true at their current frame; the echoes are free of their background."""

    geometry: RadarGeometry
    activities: tuple[str, ...]
    echoes: NDArray[np.complex64]
    joints: NDArray[np.float32]
    activity: NDArray[np.int64]
    body: NDArray[np.bool_]
    behind_wall: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.echoes)


def write_recordings(data: Recordings, folder: Path, made_from: dict[str, Any]) -> None:
    """Writes both files, each whole or not at all; `made_from` (JSON) says how they came about."""
    folder.mkdir(parents=True, exist_ok=True)
    with write_atomically(folder / ARRAYS) as target:
        np.savez(target, **{name: getattr(data, name) for name in _TYPES})
    header = {
        "format": FORMAT, "version": VERSION, "geometry": json.loads(data.geometry.to_json()),
        "activities": list(data.activities), "made_from": made_from,
    }  # fmt: skip
    with write_atomically(folder / HEADER) as target:
        target.write((json.dumps(header, indent=1, sort_keys=True) + "\n").encode())


def made_from(folder: Path) -> dict[str, Any]:
    """What `write_recordings` was told of how the recordings of `folder` came about.

    Raises:
        RadarError: a header that is not readable; names it.
    """
    try:
        return dict(json.loads((folder / HEADER).read_text())["made_from"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RadarError(
            f"{folder / HEADER}: not readable: {error!r}; valid: a new folder, or one of `armstack aux data rfmamba`"
        ) from error


def read_recordings(folder: str | Path) -> Recordings:
    """Reads `write_recordings`'s folder.

    Raises:
        RadarError: a file that is missing, damaged, or of another format; names it.
    """
    folder = Path(folder)
    expected = "valid: a folder of `armstack aux data rfmamba`"
    if not folder.is_dir():
        raise RadarError(f"{folder}: no such folder; {expected}")
    try:
        header = json.loads((folder / HEADER).read_text())
        found = header["format"], header["version"]
        if found != (FORMAT, VERSION):
            raise RadarError(f"{folder / HEADER}: format and version {found}; this Armstack reads {(FORMAT, VERSION)}")
        geometry = RadarGeometry.from_json(json.dumps(header["geometry"]))
        activities = tuple(str(name) for name in header["activities"])
    except ContractError as error:
        raise RadarError(f"{folder / HEADER}: {error}") from error
    except RadarError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RadarError(f"{folder / HEADER}: not readable: {error!r}; {expected}") from error
    try:
        with np.load(folder / ARRAYS, allow_pickle=False) as arrays:
            values = {name: arrays[name] for name in _TYPES}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise RadarError(f"{folder / ARRAYS}: not readable: {error}; {expected}") from error
    try:
        return Recordings(geometry=geometry, activities=activities, **values)
    except RadarError as error:
        raise RadarError(f"{folder / ARRAYS}: {error}") from error


def fingerprint(data: Recordings) -> str:
    """sha256 over geometry and all arrays, for `Bundle.data_fingerprint`."""
    digest = hashlib.sha256(data.geometry.to_json().encode())
    for name in _TYPES:
        digest.update(np.ascontiguousarray(getattr(data, name)).data)
    return digest.hexdigest()
