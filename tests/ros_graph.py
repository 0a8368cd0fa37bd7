"""What tests over a real ROS graph share: a domain of their own, a probe node that awaits messages, node processes."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

pytest.importorskip("rclpy", reason="the ROS wheels are missing: pip install 'armstack[ros]'")

import rclpy  # noqa: E402
from rclpy.node import Node  # noqa: E402

from robot_bridge.nodes.qos import STREAM, subscribe  # noqa: E402
from robot_bridge.nodes.spin import SpinThread  # noqa: E402
from robot_bridge.ros_environment import prepare_ros_environment  # noqa: E402

AnyNode = TypeVar("AnyNode", bound=Any)
ROOT = Path(__file__).resolve().parent.parent
# Processes of a parallel run take turns: 1, 3, 5, ... and 2, 4, 6, ...; other users of the machine are told apart by the process id.
_WORKER, _WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_DOMAINS = itertools.count(os.getppid() if _WORKERS > 1 else os.getpid())


class Collected:
    """Messages of one topic, with their arrival on the monotonic clock."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.messages: list[Any] = []
        self.arrivals: list[float] = []

    def add(self, message: Any) -> None:
        with self._changed:
            self.messages.append(message)
            self.arrivals.append(time.monotonic())
            self._changed.notify_all()

    def wait(self, condition: Callable[[Any], bool] = lambda message: True, *, after: int = 0, timeout_s: float = 10.0) -> Any:
        """The first message from index `after` on that fulfils `condition`."""
        deadline = time.monotonic() + timeout_s
        seen = max(0, after)
        with self._changed:
            while True:
                while seen < len(self.messages):
                    if condition(self.messages[seen]):
                        return self.messages[seen]
                    seen += 1
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    raise AssertionError(f"no such message in {timeout_s} s; the last of {len(self.messages)}: {self.messages[-1:]}")


class NodeProcess:
    """A node in a process of its own, with its output."""

    def __init__(self, module: str, *arguments: str, env: dict[str, str] | None = None) -> None:
        self.output = Collected()
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **(env or {})},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.add(line.rstrip())

    def wait_line(self, text: str, timeout_s: float = 30.0) -> str:
        """The first line of output that holds `text`."""
        line: str = self.output.wait(lambda found: text in found, timeout_s=timeout_s)
        return line

    def kill(self) -> None:
        """kill -9."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def end(self, number: int = signal.SIGTERM, timeout_s: float = 10.0) -> int:
        """Sends a signal, awaits the end, gives the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout_s)


class Graph:
    """One ROS domain with a probe node that is spun, and node processes that are ended with the test."""

    def __init__(self) -> None:
        self.probe = Node("probe")
        self._processes: list[NodeProcess] = []

    def collect(self, message_type: type[Any], topic: str, profile: Any = STREAM) -> Collected:
        """Collects what comes on `topic`."""
        collected = Collected()
        subscribe(self.probe, message_type, topic, collected.add, profile)
        return collected

    def process(self, module: str, *arguments: str) -> NodeProcess:
        """Starts `python -m module`."""
        process = NodeProcess(module, *arguments)
        self._processes.append(process)
        return process

    def close(self) -> None:
        for process in self._processes:
            if process.process.poll() is None:
                process.kill()


def own_domain() -> int:
    """A ROS domain from 1 to 70 that no other test uses at the same time; evaluations over ROS take those above."""
    return (next(_DOMAINS) * _WORKERS + _WORKER) % 70 + 1


@contextmanager
def spun(node: AnyNode) -> Iterator[AnyNode]:
    """One of our nodes in this process, spun on a thread; ended with the block."""
    try:
        with SpinThread(node, failure=node.failure):
            yield node
    finally:
        node.close()
        node.destroy_node()


@pytest.fixture
def ros(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """rclpy, initialised in a domain of its own that no other test and no network sees; gives the domain id."""
    domain = own_domain()
    own = {"ROS_DOMAIN_ID": str(domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    prepare_ros_environment(own)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    rclpy.init(domain_id=domain)
    yield domain
    rclpy.try_shutdown()


@pytest.fixture
def graph(ros: int) -> Iterator[Graph]:
    """A graph with a spun probe node."""
    graph = Graph()
    with SpinThread(graph.probe):
        yield graph
    graph.close()
    graph.probe.destroy_node()
