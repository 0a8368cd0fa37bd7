"""Files that appear whole or not at all."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

PART = ".part"


@contextmanager
def write_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Opens `path.part` for writing; at the end it is flushed to the disk and renamed to `path`.

    A process that dies meanwhile leaves the old `path` (or none) and a `.part`, which `remove_stale_parts` clears away. The
    part is locked while its writer lives.
    """
    part = path.with_name(path.name + PART)
    with _locked(part) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.rename(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _locked(part: Path) -> IO[bytes]:
    """`part`, empty and locked: no other writer had it, and nobody removed it before it was locked."""
    while True:
        file = os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.path.samestat(part.stat(), os.fstat(file.fileno())):
                file.truncate()
                return file
        except FileNotFoundError:  # removed, or finished by the other writer
            pass
        except BaseException:
            file.close()
            raise
        file.close()


def remove_stale_parts(folder: Path) -> list[str]:
    """Deletes the parts in `folder` whose writer is dead and returns their names; a living writer holds a lock on its own."""
    removed = []
    for part in sorted(folder.glob(f"*{PART}")):
        try:
            with open(part, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()
                removed.append(part.name)
        except (BlockingIOError, FileNotFoundError):
            continue
    return removed
