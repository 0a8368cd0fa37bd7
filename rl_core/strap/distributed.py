"""search_cluster: an index searched by many machines through Ray, with the matches of one process.

Each task opens the index by its path, which all machines see, and searches some of its trajectories. Ray gives the tasks of a machine
that is lost to another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.strap.index import Index
from rl_core.strap.sdtw import RetrievalError, Steps
from rl_core.strap.search import Match, Progress, merge_matches, search

_TASKS_A_CORE = 4
_RETRIES = 5


def search_cluster(
    queries: Sequence[NDArray[Any]],
    folder: Path,
    k: int,
    *,
    steps: Steps = "strap",
    address: str | None = None,
    progress: Progress = lambda done: None,
) -> list[list[Match]]:
    """`search` in the index at `folder`, over the machines of a Ray cluster.

    Args:
        queries: see `search`.
        folder: an index, at the same path on every machine.
        k: see `search`.
        steps: see `search`.
        address: of the cluster, e.g. `auto` or `ray://head:10001`; None = the one this process is connected to, or a new local one.
        progress: see `search`.

    Raises:
        RetrievalError: Ray is not installed, no cluster at `address`, or a task failed for good (its machines lost too often).
    """
    try:
        import ray
    except ImportError as error:
        raise RetrievalError(f"searching over machines needs Ray ({error}): pip install 'armstack[distributed]'") from error
    started = not ray.is_initialized()
    if started:
        try:
            ray.init(address=address, log_to_driver=False, include_dashboard=False if address is None else None)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise RetrievalError(f"no Ray cluster at {address!r}: {error}; valid: the address of a running one, or none") from error
    try:
        total = len(Index(folder))
        tasks = max(1, min(total, _TASKS_A_CORE * int(ray.cluster_resources().get("CPU", 1))))
        edges = np.linspace(0, total, tasks + 1).astype(int).tolist()
        shared: Any = ray.put([np.asarray(query, np.float32) for query in queries])
        remote = ray.remote(max_retries=_RETRIES, num_cpus=1)(search_span)
        spans = {remote.remote(shared, str(folder), k, steps, a, b): (a, b) for a, b in zip(edges[:-1], edges[1:], strict=True)}
        parts: list[list[list[Match]]] = []
        waiting = list(spans)
        while waiting:
            done, waiting = ray.wait(waiting)
            parts.append(ray.get(done[0]))
            progress(spans[done[0]][1] - spans[done[0]][0])
        return merge_matches(parts, k)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause if isinstance(error.cause, RetrievalError) else error
        raise RetrievalError(f"a search task failed: {cause}") from error
    except ray.exceptions.RayError as error:
        raise RetrievalError(f"the cluster failed: {error}; a task is given to another machine {_RETRIES} times") from error
    finally:
        if started:
            ray.shutdown()


def search_span(queries: Sequence[NDArray[Any]], folder: str, k: int, steps: Steps, first: int, last: int) -> list[list[Match]]:
    """What one task does: trajectories first..last-1."""
    return search(queries, Index(Path(folder)), k, steps=steps, span=(first, last))
