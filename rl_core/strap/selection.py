"""Which matches are kept: the same number for every segment, because costs of segments of different lengths do not compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rl_core.strap.sdtw import RetrievalError
from rl_core.strap.search import Match


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Frames `start` to `stop` (exclusive) of target demonstration number `demo`."""

    demo: int
    start: int
    stop: int


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Frames `start` to `stop` (exclusive) of a prior trajectory, retrieved for the segment number `segment` (-1: for none alone)."""

    trajectory: int
    start: int
    stop: int
    cost: float
    segment: int = -1


def matches_needed(total: int, segments: int, *, unique: bool) -> int:
    """How many matches of each segment `select` may have to look at."""
    share = _share(total, segments)
    return share * segments if unique else share


def select(matches: Sequence[Sequence[Match]], total: int, *, unique: bool = False) -> list[Piece]:
    """The max(1, floor(total / S)) cheapest matches of each of the S segments.

    Args:
        matches: of every segment, cheapest first.
        total: K, pieces wanted in all; where S > K, there are S.
        unique: a piece may come once only; the next cheapest takes the place of one that overlaps a piece chosen already by half of the
            shorter one or more. By default (as the paper) a piece may come several times, which gives it more weight.
    """
    share = _share(total, len(matches))
    chosen: list[Piece] = []
    for segment, found in enumerate(matches):
        kept = 0
        for match in found:
            if kept == share:
                break
            if unique and any(_overlaps(match, piece) for piece in chosen):
                continue
            chosen.append(Piece(trajectory=match.trajectory, start=match.start, stop=match.stop, cost=match.cost, segment=segment))
            kept += 1
    return chosen


def _share(total: int, segments: int) -> int:
    if total < 1 or segments < 1:
        raise RetrievalError(f"{total} pieces for {segments} segments; valid: 1 or more of both")
    return max(1, total // segments)


def _overlaps(match: Match, piece: Piece) -> bool:
    common = min(match.stop, piece.stop) - max(match.start, piece.start)
    shorter = min(match.stop - match.start, piece.stop - piece.start)
    return match.trajectory == piece.trajectory and 2 * common >= shorter
