"""Checks of where a command is to write, made before it works for minutes."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from rl_core.errors import ArmstackError


def check_folder(path: Path, option: str) -> None:
    """Raises ArmstackError where `path` is, or lies in, something that is no folder, or that nothing can be written into."""
    if path.exists() and not path.is_dir():
        raise ArmstackError(f"{option} {path}: is a file, valid: a folder")
    _check_parents(path, option)
    _check_written(next((place for place in (path, *path.parents) if place.exists()), path), path, option)


def check_file(path: Path, option: str) -> None:
    """Makes the folder of the file `path` and checks that it can be written to.

    Raises:
        ArmstackError: it cannot, or `path` is a folder.
    """
    if path.is_dir():
        raise ArmstackError(f"{option} {path}: is a folder, valid: a file to write")
    _check_parents(path, option)
    _check_written(path.parent, path, option)


def check_page(path: Path, option: str) -> None:
    """`check_file` for an HTML page.

    Raises:
        ArmstackError: as `check_file`, or the ending is another one: a page must not replace a dataset.
    """
    check_file(path, option)
    _check_ending(path, option, (".html", ".htm"))


def check_picture(path: Path, option: str) -> None:
    """`check_file` for a picture that Matplotlib draws.

    Raises:
        ArmstackError: as `check_file`, or an ending that it cannot write.
    """
    _check_ending(path, option, (".png", ".jpg", ".svg", ".pdf"))
    check_file(path, option)


def _check_ending(path: Path, option: str, endings: Sequence[str]) -> None:
    if path.suffix.lower() not in endings:
        raise ArmstackError(f"{option} {path}: the ending is {path.suffix!r}, valid: {', '.join(endings)}")


def _check_parents(path: Path, option: str) -> None:
    nearest = next((parent for parent in path.parents if parent.exists()), None)
    if nearest is not None and not nearest.is_dir():
        raise ArmstackError(f"{option} {path}: {nearest} is a file, valid: a folder")


def _check_written(folder: Path, path: Path, option: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ArmstackError(f"{option} {path}: nothing can be written into {folder}: {error.strerror}") from error
