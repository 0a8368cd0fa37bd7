"""What a reader had to make up or could not keep, said in a warning and told to whoever listens.

Files of others lack what a contract says, and hold numbers in more digits than are kept. A dataset doesn't know that of itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

_logger = logging.getLogger(__name__)
_FIELD = "dataset_field"


def say_inferred(source: object, text: str) -> None:
    """The contract isn't in the file; `text` says where it is from."""
    _logger.warning("%s: no contract in it: %s", source, text, extra={_FIELD: "contract"})


def say_narrowed(source: object, names: Iterable[str]) -> None:
    """The numbers of `names`, if there are any, were changed by reading them as float32."""
    named = ", ".join(names)
    if named:
        _logger.warning("%s: read as float32, which changes digits of %s", source, named, extra={_FIELD: "precision"})


def is_narrowed(values: NDArray[np.generic]) -> bool:
    """Whether float32 doesn't hold every one of these numbers."""
    if values.dtype.kind not in "iuf" or values.dtype.itemsize <= (4 if values.dtype.kind == "f" else 2):
        return False
    with np.errstate(over="ignore"):
        return not np.array_equal(values, values.astype(np.float32), equal_nan=values.dtype.kind == "f")


class _Listener(logging.Handler):
    def __init__(self, heard: list[logging.LogRecord]) -> None:
        super().__init__(logging.WARNING)
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self._heard.append(record)


@contextmanager
def listening() -> Iterator[list[logging.LogRecord]]:
    """Collects the warnings of all readers while the block runs."""
    heard: list[logging.LogRecord] = []
    handler = _Listener(heard)
    logger = logging.getLogger("rl_core.data")
    logger.addHandler(handler)
    try:
        yield heard
    finally:
        logger.removeHandler(handler)


def by_field(records: Iterable[logging.LogRecord]) -> dict[str, str]:
    """Name of `rl_core.data.formats.base.FIELDS` -> what was said of it."""
    return {getattr(record, _FIELD): record.getMessage() for record in records if hasattr(record, _FIELD)}
