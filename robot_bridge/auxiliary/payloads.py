"""What a method's inputs and outputs are called in JSON: frames by their stamp, bytes by their sha256. Arrays and bytes never are in it."""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rl_core.data.atomic import write_atomically
from rl_core.errors import ArmstackError

MESSAGE_LIMIT = 1_000_000
"""Bytes that go as one message; more go as a file."""

_FRAMES, _MESSAGES = 64, 16


class PayloadError(ArmstackError):
    """A frame or bytes that are not there or not what was named, or a value that JSON may not hold; says what is valid."""


def to_json(values: Mapping[str, Any]) -> str:
    """JSON text of names and finite numbers.

    Raises:
        PayloadError: an array, bytes, NaN or infinity; names the field.
    """
    _check("", values)
    return json.dumps(values)


def _check(where: str, value: Any) -> None:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise PayloadError(f"{where or 'payload'}: key {name!r}, valid: text")
            _check(f"{where}.{name}".lstrip("."), inner)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            _check(f"{where}[{index}]", inner)
    elif isinstance(value, float) and not math.isfinite(value):
        raise PayloadError(f"{where}: {value}, valid: a finite number")
    elif not isinstance(value, str | int | float | bool | None):
        raise PayloadError(
            f"{where}: {type(value).__name__} in JSON; valid: text, numbers, lists and objects; "
            "a frame is named by its stamp, bytes by their sha256"
        )


class FrameRing:
    """The newest frames, each under its stamp; safe to use from any thread.

    Args:
        capacity: how many are kept.
    """

    def __init__(self, capacity: int = _FRAMES) -> None:
        self._capacity = capacity
        self._frames: OrderedDict[int, NDArray[np.uint8]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, stamp_ns: int, frame: NDArray[np.uint8]) -> None:
        """Keeps a frame (H, W, 3) and lets the oldest go."""
        with self._lock:
            self._frames[stamp_ns] = frame
            while len(self._frames) > self._capacity:
                self._frames.popitem(last=False)

    def get(self, stamp_ns: int) -> NDArray[np.uint8]:
        """The frame of that stamp.

        Raises:
            PayloadError: not there any more, or never; says which are.
        """
        with self._lock:
            if stamp_ns not in self._frames:
                there = f"{len(self._frames)} from {min(self._frames)} to {max(self._frames)}" if self._frames else "none yet"
                raise PayloadError(f"no frame of stamp {stamp_ns} ns; frames kept: {there}")
            return self._frames[stamp_ns]


class PayloadStore:
    """Bytes under their sha256: those of messages in memory (the newest 16), larger ones as a file.

    Args:
        folder: of the files; None refuses what is above `MESSAGE_LIMIT`.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._messages: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, data: bytes) -> dict[str, Any]:
        """Keeps `data`; gives what JSON says of it: `sha256`, `size`, `place` (`message` or `store`).

        Raises:
            PayloadError: too large for a message, and there is no folder.
        """
        sha256 = hashlib.sha256(data).hexdigest()
        place: Literal["message", "store"] = "message" if len(data) <= MESSAGE_LIMIT else "store"
        if place == "message":
            with self._lock:
                self._messages[sha256] = data
                while len(self._messages) > _MESSAGES:
                    self._messages.popitem(last=False)
        elif self._folder is None:
            raise PayloadError(f"{len(data)} bytes without a store; valid: at most {MESSAGE_LIMIT}, or a folder for larger ones")
        else:
            self._folder.mkdir(parents=True, exist_ok=True)
            with write_atomically(self._folder / sha256) as file:
                file.write(data)
        return {"sha256": sha256, "size": len(data), "place": place}

    def get(self, sha256: str) -> bytes:
        """The bytes of that sha256.

        Raises:
            PayloadError: not there, not a sha256, or a file whose bytes have another.
        """
        if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
            raise PayloadError(f"{sha256!r}: no sha256, valid: 64 hex digits")
        with self._lock:
            if sha256 in self._messages:
                return self._messages[sha256]
        file = None if self._folder is None else self._folder / sha256
        if file is None or not file.is_file():
            raise PayloadError(f"no bytes of sha256 {sha256}; send them first" + (f", or put the file into {self._folder}" if file else ""))
        data = file.read_bytes()
        if (found := hashlib.sha256(data).hexdigest()) != sha256:
            raise PayloadError(f"{file}: its sha256 is {found}; the file was damaged or exchanged")
        return data
