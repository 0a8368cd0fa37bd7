"""Search over two machines, as Ray's local cluster plays them: raylets, stores and workers of their own."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rl_core.strap import distributed
from rl_core.strap.distributed import search_cluster
from rl_core.strap.index import Index, IndexWriter
from rl_core.strap.sdtw import RetrievalError
from rl_core.strap.search import search

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'armstack[distributed]'")


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    from ray.cluster_utils import Cluster

    resources = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=resources)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Index:
    folder = tmp_path_factory.mktemp("index")
    rng = np.random.default_rng(0)
    with IndexWriter(folder, 48, {}) as writer:
        for _ in range(80):
            writer.add(rng.normal(size=(int(rng.integers(20, 60)), 48)).cumsum(axis=0) * 0.2)
    return Index(folder)


def queries() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [(rng.normal(size=(length, 48)).cumsum(axis=0) * 0.2).astype(np.float32) for length in (8, 15, 30)]


def test_two_machines_find_what_one_process_finds_also_when_one_is_lost(cluster, index) -> None:
    expected = search(queries(), index, 5)
    second = cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    cluster.wait_for_nodes()
    assert len([node for node in ray.nodes() if node["Alive"]]) == 2

    lost = threading.Event()

    def lose_the_second(done: int) -> None:
        if not lost.is_set():
            lost.set()
            cluster.remove_node(second, allow_graceful=False)

    told: list[int] = []
    assert search_cluster(queries(), index.folder, 5, progress=lambda done: told.append(done)) == expected
    assert sum(told) == 80 and len(told) == 8
    assert search_cluster(queries(), index.folder, 5, progress=lose_the_second) == expected
    assert lost.is_set() and not second.any_processes_alive()


def test_a_worker_that_dies_is_replaced(cluster, index, tmp_path, monkeypatch) -> None:
    mark, span = tmp_path / "died", distributed.search_span

    def die_once(queries, folder, k, steps, first, last):
        if first == 0 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return span(queries, folder, k, steps, first, last)

    monkeypatch.setattr(distributed, "search_span", die_once)
    assert search_cluster(queries(), index.folder, 5) == search(queries(), index, 5)
    assert mark.exists()


def test_what_a_task_refuses_is_told(cluster, index) -> None:
    with pytest.raises(RetrievalError, match=r"a search task failed: .*shape \(4, 3\), valid: \(1 frame or more, 48\)"):
        search_cluster([np.zeros((4, 3))], index.folder, 2)
    with pytest.raises(RetrievalError, match="no index.json"):
        search_cluster(queries(), Path("/nowhere"), 2)
