"""search: the k best matches of every query in a corpus that need not fit into memory.

Trajectories are read in blocks. Of a block every (query, trajectory) pair first gets a lower bound (`rl_core.strap.bounds`), for all
queries in one product a trajectory; then the pairs of a query are aligned exactly, the smallest bound first, until the next bound is
above its k-th best cost (filter and refine: Seidl and Kriegel, Optimal multi-step k-nearest neighbor search, 1998). So the result is
that of aligning all pairs, to the bit, in whatever order, blocks, threads or shards it is worked out.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_core.strap.bounds import Bounds
from rl_core.strap.sdtw import RetrievalError, Steps, align_tensors, as_double

RANK = 64
"""Dimensions of the bounds' basis."""
_BLOCK_VALUES = 2**23
_FIRST_BLOCK = 1 / 8
"""Share of a block that is read first: it gives the costs that end later work early."""
_TIGHT = 0.8
_MANY = 0.25
"""Where bounds are below this share of the costs, or more than this share of a block's pairs had to be aligned, a basis is of no use:
from there on bounds take all dimensions."""

Progress = Callable[[int], None]
"""Takes how many trajectories are done."""


@dataclass(frozen=True, kw_only=True, order=True)
class Match:
    """Frames `start` to `stop` (exclusive) of the prior trajectory `trajectory`, and their S-DTW cost. Cheapest first, then in order."""

    cost: float
    trajectory: int
    start: int
    stop: int


class Trajectories(Protocol):
    """Features of many trajectories: what `search` reads."""

    lengths: NDArray[np.int64]
    """(n,) frames of each."""

    def block(self, first: int, last: int) -> NDArray[np.float16]:
        """Finite features (frames, d) of the trajectories first..last-1, one behind the other."""
        ...


class InMemory:
    """`Trajectories` from arrays (M, d)."""

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        self.lengths = np.array([len(array) for array in arrays], np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self.lengths)])
        self._features = np.concatenate(arrays).astype(np.float16)

    def block(self, first: int, last: int) -> NDArray[np.float16]:
        """See `Trajectories`."""
        return self._features[self._starts[first] : self._starts[last]]


def search(
    queries: Sequence[NDArray[Any]],
    prior: Trajectories,
    k: int,
    *,
    steps: Steps = "strap",
    threads: int = 1,
    rank: int = RANK,
    span: tuple[int, int] | None = None,
    progress: Progress = lambda done: None,
) -> list[list[Match]]:
    """The `k` cheapest matches of every query, at most one a prior trajectory; fewer where fewer exist.

    Args:
        queries: features (N_q, d) of the segments; finite.
        prior: the corpus.
        k: matches a query.
        steps: name in `rl_core.strap.sdtw.STEPS`.
        threads: of this process; the result does not depend on it.
        rank: of the bounds' basis.
        span: search trajectories span[0]..span[1]-1 only.
        progress: told how many trajectories are done.

    Raises:
        RetrievalError: no query, an empty or non-finite one, another width than the corpus, or k below 1.
    """
    if k < 1:
        raise RetrievalError(f"k is {k}, valid: 1 or more matches a query")
    first, last = span or (0, len(prior.lengths))
    precise = _check([np.asarray(query, np.float64) for query in queries], prior, first, last)
    doubles = [as_double(query) for query in precise]
    found: list[list[Match]] = [[] for _ in queries]
    size, exact = precise[0].shape[1], rank >= precise[0].shape[1]
    bounds = [Bounds(precise, steps, None if exact else rank) for _ in range(threads)]
    with _one_torch_thread(), ThreadPoolExecutor(threads) as pool:
        for begin, end in _blocks(prior.lengths, size, first, last):
            block = _Block(prior, begin, end)
            limits = np.array([_limit(matches, k) for matches in found])
            edges = np.linspace(0, end - begin, threads + 1).astype(int).tolist()
            parts = [pool.submit(_lower, *each, block, limits) for each in zip(bounds, edges[:-1], edges[1:], strict=True)]
            lower = np.concatenate([part.result() for part in parts])
            tasks = [pool.submit(_refine, doubles[q], block, lower[:, q], found[q], k, steps) for q in range(len(doubles))]
            done = [task.result() for task in tasks]
            shares = np.concatenate([tightness for _, tightness in done])
            many = begin > first and sum(aligned for aligned, _ in done) > _MANY * lower.size
            if not exact and (many or (len(shares) > 0 and shares.mean() < _TIGHT)):
                exact, bounds = True, [Bounds(precise, steps, None) for _ in range(threads)]
            progress(end - first)
    return found


def merge_matches(parts: Sequence[Sequence[Sequence[Match]]], k: int) -> list[list[Match]]:
    """The `k` best matches of every query, of the results of several searches in separate spans."""
    return [sorted(match for matches in each for match in matches)[:k] for each in zip(*parts, strict=True)]


class _Block:
    def __init__(self, prior: Trajectories, begin: int, end: int) -> None:
        self.begin = begin
        self._starts = np.concatenate([[0], np.cumsum(prior.lengths[begin:end])])
        self._features = prior.block(begin, end)

    def __getitem__(self, index: int) -> NDArray[np.float16]:
        return self._features[self._starts[index] : self._starts[index + 1]]

    def double(self, index: int) -> Tensor:
        return as_double(self[index])


def _lower(bounds: Bounds, first: int, last: int, block: _Block, limits: NDArray[np.float64]) -> NDArray[np.float64]:
    """(last - first, Q) lower bounds of trajectories of the block."""
    return np.array([bounds.lower(block[number], limits) for number in range(first, last)]).reshape(-1, len(limits))


def _refine(query: Tensor, block: _Block, lower: NDArray[np.float64], found: list[Match], k: int, steps: Steps) -> tuple[int, list[float]]:
    """Adds the block's matches to `found`, sorted, k at most; how many pairs were aligned, and bound / cost of those matched."""
    aligned, tightness = 0, []
    for index in np.argsort(lower, kind="stable"):
        limit = _limit(found, k)
        if lower[index] > limit or math.isinf(lower[index]):
            break
        aligned += 1
        place = align_tensors(query, block.double(int(index)), steps, limit)
        if place is not None:
            tightness.append(lower[index] / place.cost if place.cost else 1.0)
            bisect.insort(found, Match(cost=place.cost, trajectory=block.begin + int(index), start=place.start, stop=place.stop))
            del found[k:]
    return aligned, tightness


def _limit(found: list[Match], k: int) -> float:
    return found[k - 1].cost if len(found) >= k else math.inf


def _blocks(lengths: NDArray[np.int64], size: int, first: int, last: int) -> Iterator[tuple[int, int]]:
    begin, room = first, _BLOCK_VALUES * _FIRST_BLOCK
    while begin < last:
        values = np.cumsum(lengths[begin : min(last, begin + int(room))]) * size
        end = begin + max(1, int(np.searchsorted(values, room)))
        yield begin, min(end, last)
        begin, room = end, _BLOCK_VALUES


def _check(queries: list[NDArray[np.float64]], prior: Trajectories, first: int, last: int) -> list[NDArray[np.float64]]:
    if not queries:
        raise RetrievalError("no query, valid: 1 segment or more")
    if not 0 <= first <= last <= len(prior.lengths):
        raise RetrievalError(f"span {first}..{last}, valid: within 0..{len(prior.lengths)}")
    size = prior.block(0, min(1, len(prior.lengths))).shape[1]
    for number, query in enumerate(queries):
        if query.ndim != 2 or not len(query) or query.shape[1] != size:
            raise RetrievalError(f"segment {number} has features of shape {query.shape}, valid: (1 frame or more, {size}) as the corpus")
        if not np.isfinite(query).all():
            raise RetrievalError(f"segment {number} has features that are not finite")
    return queries


class _one_torch_thread:
    """Products are small, and threads of our own share the work: torch's would only wait for each other."""

    def __enter__(self) -> None:
        self._before = torch.get_num_threads()
        torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        torch.set_num_threads(self._before)
