"""Retrieval: 25 segments in 500 trajectories, ours beside S-DTW pair by pair, on one core and on two; and how time grows with the corpus.

Features are made up: smooth paths through a space of few dimensions, as frames of a moving arm give, seen in 768 with noise. Ours reads
the index (half precision, on disk), the peer has single precision in memory. `worst` is pure noise, where no bound helps.
"""

from __future__ import annotations

import json
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from dtaidistance.subsequence.dtw import subsequence_alignment
from numpy.typing import NDArray

from benchmarks.peers.pairwise_sdtw import PairwiseSearch
from rl_core.strap.index import Index, IndexWriter
from rl_core.strap.search import Match, search

PRIOR, SEGMENTS, SIZE, K = 500, 25, 768, 4
ROUNDS = 3
GROWTH = (1_000, 10_000, 100_000)
GROWTH_SIZE, GROWTH_LENGTHS, GROWTH_SEGMENTS = 64, (50, 151), 5
DTAI_PAIRS = 10


def main() -> dict[str, Any]:
    """Seconds of CPU time on one core and of wall-clock time on two (median over rounds); the matches are checked to be equal.

    Returns:
        `ours`, `peer`, `ratio`: one core; `two_cores`: wall-clock of both with two threads; `worst`: features that are pure noise;
        `dtaidistance`: its subsequence alignment of a pair beside ours, textbook steps; `growth`: trajectories -> seconds a query and
        peak memory, MiB; `setting`.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory() as folder:
            growth = _growth(Path(folder) / "growth")  # first: the memory of what follows is no part of it
            smooth = _compare(Path(folder) / "smooth", noise=0.05, rank=30)
            worst = _compare(Path(folder) / "worst", noise=1.0, rank=0)
            return {
                **smooth,
                "worst": worst,
                "dtaidistance": _dtaidistance(),
                "growth": growth,
                "setting": _setting(),
            }
    finally:
        torch.set_num_threads(threads)


def _paths(rng: np.random.Generator, count: int, lengths: tuple[int, int], basis: NDArray[Any], noise: float) -> list[NDArray[np.float32]]:
    """Straight lines between random points of the space that `basis` (rank, size) spans, 30 frames each, and noise in all dimensions."""
    found = []
    for _ in range(count):
        frames = int(rng.integers(*lengths))
        points = rng.normal(size=(frames // 30 + 2, len(basis)))
        at = np.arange(frames) / 30
        share = (at % 1)[:, None]
        walk = points[at.astype(int)] * (1 - share) + points[at.astype(int) + 1] * share
        features = walk @ basis + noise * rng.normal(size=(frames, basis.shape[1]))
        found.append(features.astype(np.float16).astype(np.float32))
    return found


def _compare(folder: Path, *, noise: float, rank: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    basis = rng.normal(size=(rank, SIZE)) * np.exp(-np.arange(rank) / 10)[:, None]
    prior = _paths(rng, PRIOR, (100, 200), basis, noise)
    queries = _paths(rng, SEGMENTS, (20, 60), basis, noise)
    with IndexWriter(folder, SIZE, {}) as writer:
        for rows in prior:
            writer.add(rows)
    index, peer = Index(folder), PairwiseSearch(queries, prior)
    _check_equal(search(queries, index, K), peer.search(K, 1))
    one = _alternate({"ours": lambda: search(queries, index, K), "peer": lambda: peer.search(K, 1)}, time.process_time)
    calls = {
        "ours": lambda: search(queries, index, K, threads=2),
        "peer": lambda: peer.search(K, 2),
        "peer_on_one": lambda: peer.search(K, 1),
    }
    two = _alternate(calls, time.perf_counter)
    return {
        **one,
        "ratio": one["peer"] / one["ours"],
        "peer_name": "S-DTW pair by pair: BLAS distances, compiled accumulation",
        "two_cores": {**two, "ratio": two["peer"] / two["ours"], "ratio_to_one_core": two["peer_on_one"] / two["ours"]},
    }


def _alternate(calls: dict[str, Callable[[], Any]], clock: Callable[[], float]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            started = clock()
            call()
            times[name].append(clock() - started)
    return {name: float(np.median(values)) for name, values in times.items()}


def _check_equal(ours: Sequence[Sequence[Match]], theirs: Sequence[Sequence[Match]]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose([match.cost for match in one], [match.cost for match in other], rtol=1e-4)
        places = [[(match.trajectory, match.start, match.stop) for match in matches] for matches in (one, other)]
        if places[0] != places[1]:
            raise AssertionError(f"the matches of the two differ, the comparison would not be fair: {places}")


def _dtaidistance() -> dict[str, Any]:
    """dtaidistance allows the textbook's steps only, sums squares and gives their root: not STRAP's match, but the same kind of work."""
    rng = np.random.default_rng(1)
    basis = rng.normal(size=(30, SIZE))
    priors = [rows.astype(np.float64) for rows in _paths(rng, DTAI_PAIRS, (150, 151), basis, 0.05)]
    query = _paths(rng, 1, (40, 41), basis, 0.05)[0].astype(np.float64)
    peer = PairwiseSearch([query.astype(np.float32)], [rows.astype(np.float32) for rows in priors])
    calls: dict[str, Callable[[], Any]] = {
        "dtaidistance": lambda: [subsequence_alignment(query, rows, use_c=True).best_match().distance for rows in priors],
        "pairwise": lambda: peer.search(1, 1),
    }
    for call in calls.values():
        call()
    times = _alternate(calls, time.process_time)
    return {f"{name}_ms_a_pair": seconds / DTAI_PAIRS * 1e3 for name, seconds in times.items()}


def _growth(folder: Path) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    basis = rng.normal(size=(16, GROWTH_SIZE))
    queries = _paths(rng, GROWTH_SEGMENTS, (20, 50), basis, 0.05)
    found = {}
    with IndexWriter(folder, GROWTH_SIZE, {}) as writer:
        for count in GROWTH:
            while len(writer.trajectories) < count:
                writer.add(_paths(rng, 1, GROWTH_LENGTHS, basis, 0.05)[0])
            writer.save()
            index = Index(folder)
            search(queries, index, K, span=(0, 10))  # compiled before the clock starts
            started = time.process_time()
            search(queries, index, K)
            seconds = time.process_time() - started
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            found[str(count)] = {"cpu_s_a_query": seconds / GROWTH_SEGMENTS, "peak_mib": peak}
    return found


def _setting() -> dict[str, Any]:
    return {
        "unit": "seconds for all segments: CPU time on one core, wall-clock on two; median",
        "prior": PRIOR,
        "segments": SEGMENTS,
        "size": SIZE,
        "frames": "100-199 prior, 20-59 segment",
        "k": K,
        "rounds": ROUNDS,
        "growth": f"{GROWTH_SEGMENTS} segments, {GROWTH_SIZE} dimensions, 50-150 frames",
    }


if __name__ == "__main__":
    print(json.dumps(main()))
