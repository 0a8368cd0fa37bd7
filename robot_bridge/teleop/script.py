"""Script: a list of keys and motions that are done one after the other, for demonstrations without a person and for tests.

    - {key: t}                             # a key of the keyboard, pressed once
    - {key: w, for: 1.5}                   # held
    - {delta: {z: 0.05, rz: 0.3}, for: 1}  # metres and rad in all, along and about the axes of frame base
    - {wait: 0.5}                          # seconds; the target stays
    - {until: recording}                   # or following, idle: the arm follows, an episode runs, none runs

`for` counts while the arm follows and stands still while it does not. After the last entry nothing is asked for any more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from numpy.typing import NDArray

from rl_core.yaml_text import load_yaml
from robot_bridge.control.decode import POSE_AXES
from robot_bridge.teleop.base import Event, Reading, SourceError, View
from robot_bridge.teleop.keys import ACTIONS, MOVES, keys_twist

_CONDITIONS = ("following", "recording", "idle")
_LONGEST_S = 0.1  # a period that took longer counts for this much: nothing is made up for at once


@dataclass(frozen=True, kw_only=True, eq=False)
class _Entry:
    event: Event | None = None
    twist: NDArray[np.float64] | None = None
    velocity: NDArray[np.float64] | None = None
    seconds: float = 0.0
    until: str = ""


class Script:
    """See `TeleopSource` and the module.

    Args:
        entries: what is done.
        where: for errors.

    Attributes:
        done: after the last entry.
    """

    space: Literal["end_effector", "joint"] = "end_effector"

    def __init__(self, entries: Sequence[Any], where: str = "script") -> None:
        self._entries = [_entry(values, f"{where}, entry {number}") for number, values in enumerate(entries, start=1)]
        self._next = 0
        self._left_s = self._entries[0].seconds if self._entries else 0.0
        self._read_s: float | None = None

    @property
    def done(self) -> bool:
        """Nothing is left."""
        return self._next >= len(self._entries)

    def open(self) -> None:
        """Nothing to open."""

    def read(self, view: View) -> Reading:
        """See `TeleopSource.read`; several events may follow each other at once, motions take a period each."""
        passed_s = 0.0 if self._read_s is None else min(view.now_s - self._read_s, _LONGEST_S)
        self._read_s = view.now_s
        while not self.done:
            entry = self._entries[self._next]
            if entry.event is not None:
                self._advance()
                return Reading(events=(entry.event,))
            if entry.until:
                if not _holds(entry.until, view):
                    return Reading()
                self._advance()
                continue
            moves = entry.twist is not None or entry.velocity is not None
            if self._left_s <= 1e-9:
                self._advance()
                continue
            if moves and not view.following:
                return Reading()
            spent_s = min(passed_s, self._left_s)
            self._left_s -= spent_s
            return Reading(twist=entry.twist, step=None if entry.velocity is None else entry.velocity * spent_s)
        return Reading()

    def _advance(self) -> None:
        self._next += 1
        if not self.done:
            self._left_s = self._entries[self._next].seconds

    def close(self) -> None:
        """Nothing to close."""


def _holds(condition: str, view: View) -> bool:
    return {"following": view.following, "recording": view.recording, "idle": not view.recording}[condition]


def read_script(path: str | Path) -> Script:
    """The script in a YAML or JSON file.

    Raises:
        SourceError: not readable, or an entry is not valid; names file and entry.
    """
    try:
        entries = load_yaml(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SourceError(f"{path}: not readable as YAML or JSON: {error}") from error
    if not isinstance(entries, list):
        raise SourceError(f"{path}: {type(entries).__name__}, valid: a list of entries")
    return Script(entries, str(path))


def _entry(values: Any, where: str) -> _Entry:
    if not isinstance(values, Mapping):
        raise SourceError(f"{where}: {values!r}, valid: keys and values")
    match sorted(map(str, values)):
        case ["key"] if values["key"] in ACTIONS:
            return _Entry(event=ACTIONS[values["key"]])
        case ["for", "key"] if values["key"] in MOVES:
            return _Entry(twist=keys_twist(values["key"]), seconds=_seconds(values["for"], where))
        case ["delta", "for"] if isinstance(values["delta"], Mapping) and set(values["delta"]) <= set(POSE_AXES):
            seconds = _seconds(values["for"], where)
            total = np.array([_number(values["delta"].get(axis, 0.0), f"{where}: delta {axis}") for axis in POSE_AXES])
            return _Entry(velocity=total / seconds, seconds=seconds)
        case ["wait"]:
            return _Entry(seconds=_seconds(values["wait"], where))
        case ["until"] if values["until"] in _CONDITIONS:
            return _Entry(until=values["until"])
    raise SourceError(
        f"{where}: {dict(values)}; valid: {{key: one of {' '.join(map(repr, ACTIONS))}}}, {{key: one of {' '.join(MOVES)}, for: seconds}}, "
        f"{{delta: {{{', '.join(POSE_AXES)}}}, for: seconds}}, {{wait: seconds}}, {{until: {' or '.join(_CONDITIONS)}}}"
    )


def _seconds(value: Any, where: str) -> float:
    seconds = _number(value, f"{where}: seconds")
    if seconds <= 0:
        raise SourceError(f"{where}: {seconds} seconds, valid: more than 0")
    return seconds


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SourceError(f"{where}: {value!r}, valid: a finite number")
    return float(value)
