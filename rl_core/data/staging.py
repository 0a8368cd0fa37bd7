"""Datasets, files or folders, that take the place of an older one only when they are whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def staged(path: Path) -> Iterator[Path]:
    """Gives a place of the same name in a new folder beside `path`; what was written there becomes `path` at the end of the block.

    After an exception in the block `path` is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
        older = Path(folder) / "older"
        target = Path(folder) / "newer" / path.name
        target.parent.mkdir()
        yield target
        if path.exists() and (path.is_dir() or target.is_dir()):
            os.rename(path, older)  # one rename replaces files only
        try:
            os.rename(target, path)
        except BaseException:
            if older.exists():
                os.rename(older, path)
            raise
