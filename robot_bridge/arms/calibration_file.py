"""The JSON files of a calibration: reading and writing them, and the error that names what is wrong in one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rl_core.data.atomic import write_atomically
from rl_core.errors import ArmstackError


class CalibrationError(ArmstackError):
    """A sweep or a calibration that cannot be used; names the file, the joint, what was found and what is valid."""


def read(path: Path, hint: str) -> dict[str, Any]:
    """The JSON object in `path`.

    Raises:
        CalibrationError: it cannot be read, or holds something else; `hint` says where such a file comes from.
    """
    try:
        data = json.loads(path.read_text())
    except FileNotFoundError:
        raise CalibrationError(f"{path}: no such file; {hint}") from None
    except OSError as error:
        raise CalibrationError(f"{path}: cannot be read: {error.strerror or error}; {hint}") from None
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested and long beyond what Python reads
        raise CalibrationError(f"{path}: not JSON: {error}; {hint}") from None
    if not isinstance(data, dict):
        raise CalibrationError(f"{path}: {named(data)}, valid: a JSON object; {hint}")
    return data


def write(path: Path, data: dict[str, Any]) -> None:
    """Writes a JSON object, whole or not at all.

    Raises:
        CalibrationError: it cannot be written.
    """
    try:
        with write_atomically(path) as file:
            file.write((json.dumps(data, indent=1) + "\n").encode())
    except OSError as error:
        raise CalibrationError(f"{path}: cannot be written: {error.strerror or error}") from error


def named(value: Any) -> str:
    """A wrong value as an error shows it: short, and a list or an object only by its kind."""
    kinds = {list: "a list", dict: "an object", type(None): "null"}
    return kinds.get(type(value)) or repr(value)[:40]


def is_number(value: Any) -> bool:
    """Whether JSON had a number there; true and false are none, nor is what no float can hold."""
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63)


def is_whole(value: Any) -> bool:
    """Whether it is a number without fraction; 2048.0 is one."""
    return is_number(value) and float(value).is_integer()
