"""The loop all nodes run in."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from std_msgs.msg import String

from robot_bridge.nodes.qos import LATCHED
from robot_bridge.nodes.spin import Failure
from tests.ros_graph import ROOT, Graph, NodeProcess

NODE = """
import threading, time, sys
from rclpy.node import Node
from std_msgs.msg import String
from robot_bridge.nodes.qos import LATCHED, advertise
from robot_bridge.nodes.spin import Failure, NodeError, run

class Busy(Node):
    def __init__(self):
        super().__init__("busy")
        self.failure = Failure()
        self.count = 0
        self.create_timer(0.002, self.tick)
        self.ready = advertise(self, String, "ready", LATCHED)
        self.ready.publish(String(data="ready"))
        if "callback" in sys.argv:
            self.create_timer(0.1, self.broken)
        if "worker" in sys.argv:
            threading.Timer(0.1, lambda: self.failure.report(NodeError("the camera is gone; plug it in"))).start()
    def tick(self):
        self.count += 1
    def broken(self):
        raise KeyError("panda_joint9")
    def close(self):
        print("closed", flush=True)

raise SystemExit(run(Busy))
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "busy_node.py").write_text(textwrap.dedent(NODE))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "busy_node"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_node_within_two_seconds(graph: Graph, module: str, number: int) -> None:
    ready = graph.collect(String, "ready", LATCHED)
    process = graph.process(module)
    ready.wait(timeout_s=20)
    start = time.monotonic()
    assert process.end(number) == 0
    assert time.monotonic() - start < 2.0
    process.wait_line("closed")
    assert not any("Traceback" in line for line in process.output.messages)


@pytest.mark.parametrize(("where", "text"), [("callback", "panda_joint9"), ("worker", "the camera is gone; plug it in")])
def test_an_error_ends_the_node_with_exit_code_1_and_says_what_happened(graph: Graph, module: str, where: str, text: str) -> None:
    process: NodeProcess = graph.process(module, where)
    assert process.process.wait(20) == 1
    process.wait_line(text)
    process.wait_line("closed")


def test_a_node_ends_with_the_launch_that_started_it_even_if_that_is_killed(graph: Graph, module: str, tmp_path: Path) -> None:
    ready = graph.collect(String, "ready", LATCHED)
    file = tmp_path / "busy.launch.yaml"
    file.write_text(f"launch:\n- executable: {{cmd: {sys.executable} -m {module}}}\n")
    program = f"from robot_bridge.launch_runner import launch; launch({str(file)!r}, {{}})"
    launcher = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert launcher.stdout is not None
    started = next(line for line in launcher.stdout if "started with pid" in line)
    pid = int(started.rsplit(" ", 1)[1])
    ready.wait(timeout_s=20)
    launcher.kill()
    launcher.wait(5)
    deadline = time.monotonic() + 3.0
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{pid}").exists()


def test_a_node_ends_with_a_launch_that_was_killed_while_it_was_still_starting(graph: Graph, module: str) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(10)
    process = NodeProcess(module, env={"ARMSTACK_LAUNCH_PID": str(gone.pid)})
    assert process.process.wait(20) == 0
    process.wait_line("closed")


def test_the_first_reported_failure_wins() -> None:
    failure = Failure()
    failure.raise_reported()
    failure.report(ValueError("first"))
    failure.report(ValueError("second"))
    with pytest.raises(ValueError, match="first"):
        failure.raise_reported()
