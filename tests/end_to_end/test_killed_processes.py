"""kill -9 in the middle of an episode: the arm is held in time, the bag can be read, an error says what happened."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from rosbags.rosbag2 import Reader
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from rl_core.data.formats.bag import recover
from robot_bridge.launch_file import read_launch_file
from robot_bridge.launch_places import find_launch_file
from robot_bridge.launch_runner import Launch
from robot_bridge.nodes.json_requests import JsonClient
from robot_bridge.nodes.qos import EVENTS
from robot_bridge.nodes.stamps import to_ns
from tests.end_to_end.driver import value
from tests.end_to_end.policies import small_bundle
from tests.end_to_end.test_e_stop import BRAKING_S
from tests.ros_graph import Collected, Graph

CONFIG = "/**: {ros__parameters: {required_guards: [camera_guard]}}\n"
SWEEP_S = 0.5  # braking from a joint's top speed, and the time that pid and message take on a busy machine


class _Running:
    """The whole graph in processes of its own, in real time."""

    def __init__(self, graph: Graph, folder: Path, *, viewer: bool) -> None:
        (folder / "arm.yaml").write_text(CONFIG)
        self.bag = folder / "bag"
        arguments = {
            "bundle": str(small_bundle(folder / "bundle", hidden=(32, 32))), "episodes": "on_request", "horizon": "400",
            "record": "true", "record_folder": str(self.bag), "viewer": str(viewer).lower(), "arm_config": str(folder / "arm.yaml"),
        }  # fmt: skip
        self.lines = Collected()
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.launch = Launch(read_launch_file(find_launch_file("sim_policy"), arguments), env=env, emit=self.lines.add)
        self.guard = graph.process("tests.end_to_end.guard_node")
        self.applied = graph.collect(JointTrajectory, "arm/applied")
        self.statuses = graph.collect(DiagnosticArray, "arm/status")
        self.diagnostics = graph.collect(DiagnosticArray, "diagnostics")
        self.episodes = graph.collect(String, "episode", EVENTS)
        self._episode = JsonClient(graph.probe, "episode")

    def wait_ready(self) -> None:
        for name in ("policy latency", "recorder"):
            self.diagnostics.wait(lambda m, name=name: m.status[0].name == name, timeout_s=60)  # type: ignore[misc]

    def new_episode(self, seed: int) -> None:
        """A fresh episode in which the arm moves."""
        self._episode.call({"op": "reset", "seed": seed}, 20.0)
        self.wait_state("moving")

    def wait_state(self, state: str) -> Any:
        return self.statuses.wait(lambda m: value(m, "state") == state, after=len(self.statuses.messages) - 1, timeout_s=20)

    def kill(self, name: str) -> int:
        """kill -9; gives the wall time, ns, before it."""
        (process,) = [p for key, p in self.launch.processes.items() if key.startswith(name)]
        now_ns = time.time_ns()
        process.kill()
        self.lines.wait(lambda line: f"[launch] {name}" in line and "killed by SIGKILL" in line, timeout_s=10)
        return now_ns

    def positions_after(self, moment_ns: int, count: int = 60) -> np.ndarray:
        """What went to the driver from `moment_ns` on."""
        begin = len(self.applied.messages)
        self.applied.wait(lambda m: to_ns(m.header.stamp) > moment_ns, after=begin)
        self.applied.wait(after=len(self.applied.messages) + count, timeout_s=20)
        return np.array([m.points[0].positions for m in self.applied.messages if to_ns(m.header.stamp) > moment_ns])


@pytest.fixture
def running(graph: Graph, tmp_path: Path) -> Iterator[_Running]:
    try:
        from sim_envs.arm.rendering import RenderingUnavailable, working_backend

        working_backend()
        viewer = True
    except RenderingUnavailable:
        viewer = False
    running = _Running(graph, tmp_path, viewer=viewer)
    with running.launch:
        running.wait_ready()
        yield running


def test_killing_recorder_camera_guard_and_policy_leaves_the_arm_held_and_the_bag_readable(graph: Graph, running: _Running) -> None:
    running.new_episode(1)
    running.diagnostics.wait(lambda m: m.status[0].name == "recorder" and "arm/applied" in str(m.status[0].values))
    running.kill("recorder")
    if any(name.startswith("camera") for name in running.launch.processes):
        running.kill("camera_front")
    # neither is needed: the arm goes on, at its own pace
    begin = len(running.applied.messages)
    running.applied.wait(after=begin + 50)
    stamps = np.array([to_ns(m.header.stamp) for m in running.applied.messages[begin:]])
    assert np.median(np.diff(stamps)) == pytest.approx(1e7, rel=0.2)
    assert recover(running.bag) > 0
    with Reader(running.bag) as reader:
        counts = {c.topic: c.msgcount for c in reader.connections}
    assert counts["/arm/contract"] == 1 and counts["/arm/applied"] > 0

    running.new_episode(2)
    running.guard.kill()
    killed_ns = time.time_ns()
    silent = "camera_guard: required guard silent"
    message = running.statuses.wait(lambda m: silent in value(m, "reason"), after=len(running.statuses.messages))
    assert value(message, "state") == "holding"
    assert to_ns(message.header.stamp) - killed_ns < 1.5e9
    assert np.ptp(running.positions_after(to_ns(message.header.stamp) + int((BRAKING_S + SWEEP_S) * 1e9)), axis=0).max() == 0.0

    running.guard = graph.process("tests.end_to_end.guard_node")
    running.new_episode(3)
    killed_ns = running.kill("policy")
    assert np.ptp(running.positions_after(killed_ns + int((0.1 + BRAKING_S + SWEEP_S) * 1e9)), axis=0).max() == 0.0
    status = running.wait_state("holding")
    assert "no command in time" in value(status, "reason")
    assert running.launch.first_failure is not None and running.launch.first_failure[0].startswith("recorder")
