"""Film: what one camera saw in one episode of a recording."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


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


@dataclass(kw_only=True)
class Unread:
    """What of a recording did not become films, filled in while it is read.

    Attributes:
        damage: what could not be read, a line each.
        unsearched: topics whose pictures are of a kind that is not searched, a line each.
    """

    damage: list[str] = field(default_factory=list)
    unsearched: list[str] = field(default_factory=list)
