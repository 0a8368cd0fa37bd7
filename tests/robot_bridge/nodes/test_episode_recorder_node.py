"""The episode recorder over a real graph: what it keeps when it is ended, killed, or the disk is full."""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from rl_core.data.episode import Dataset
from rl_core.data.formats import read_dataset
from robot_bridge.nodes.messages import joint_state, trajectory
from robot_bridge.nodes.qos import EVENTS, advertise
from tests.rl_core.data.bag_messages import MAPPING, MS, START_NS
from tests.ros_graph import Collected, Graph, NodeProcess

NAMES = ("finger", "j2", "j1")


class _Arm:
    """Publishes the topics of the bench arm from the probe."""

    def __init__(self, graph: Graph) -> None:
        self._states = advertise(graph.probe, JointState, "joint_states")
        self._goals = advertise(graph.probe, JointTrajectory, "arm/goal")
        self._episodes = advertise(graph.probe, String, "episode", EVENTS)

    def wait_heard(self) -> None:
        deadline = time.monotonic() + 20
        while not all(p.get_subscription_count() for p in (self._states, self._goals, self._episodes)):
            assert time.monotonic() < deadline, "the recorder does not listen"
            time.sleep(0.02)

    def begin(self, index: int, steps: int = 5) -> None:
        self._say(index, "running")
        for k in range(steps):
            self._step(index, k)
            self._goals.publish(
                trajectory(NAMES, np.array([[0.08, 0.0, 0.5]]), np.array([0.1]), stamp_ns=_stamp(index, k), source="policy")
            )

    def end(self, index: int, steps: int = 5) -> None:
        self._say(index, "over", success=True)
        self._step(index, steps)

    def _say(self, index: int, phase: str, success: bool = False) -> None:
        record = {"index": index, "seed": index + 7, "phase": phase, "success": success, "stamp_ns": _stamp(index, 0)}
        self._episodes.publish(String(data=json.dumps(record)))

    def _step(self, index: int, k: int) -> None:
        self._states.publish(joint_state(NAMES, np.array([0.04, 10.0 * index, 0.1 * k]), np.empty(0), _stamp(index, k)))


def _stamp(index: int, step: int) -> int:
    return START_NS + (10_000 * index + 100 * step) * MS


def _recorder(graph: Graph, folder: Path, mapping: str = MAPPING + "episodes: episode\n") -> tuple[NodeProcess, Collected]:
    file = folder / "mapping.yaml"
    file.write_text(mapping.replace("/joint_states", "joint_states").replace("/arm/goal", "arm/goal"))
    parameters = [part for value in (f"folder:={folder / 'data'}", f"mapping:={file}") for part in ("-p", value)]
    diagnostics = graph.collect(DiagnosticArray, "diagnostics")
    return graph.process("robot_bridge.nodes.episode_recorder_node", "--ros-args", *parameters), diagnostics


def _value(message: Any, key: str) -> str:
    return str({pair.key: pair.value for pair in message.status[0].values}.get(key))


def _received(message: Any, topic: str) -> int:
    return int(json.loads(_value(message, topic).replace("None", "{}")).get("received", 0))


def _by_index(dataset: Dataset) -> dict[int, Any]:
    return {episode.meta["index"]: episode for episode in dataset.episodes}


def test_ended_in_the_middle_of_an_episode_it_keeps_what_was_seen_and_counts_gaps(graph: Graph, tmp_path: Path) -> None:
    arm = _Arm(graph)
    process, diagnostics = _recorder(graph, tmp_path)
    process.wait_line("recording episodes")
    arm.wait_heard()
    arm.begin(0)
    diagnostics.wait(lambda m: _received(m, "/joint_states") == 5)  # topics have no common order
    arm.end(0)
    told = diagnostics.wait(lambda m: _value(m, "newest") == '[0, "over"]')
    assert (_value(told, "episodes"), _value(told, "pending")) in (("0", "1"), ("1", "0"))
    told = diagnostics.wait(lambda m: _value(m, "newest") == '[0, "over"]' and _value(m, "pending") == "0")
    assert _value(told, "episodes") == "1"
    process.wait_line("episode 1: 5 steps, success True")
    arm.begin(1)
    diagnostics.wait(lambda m: _received(m, "/joint_states") == 11)
    assert process.end() == 0
    episodes = _by_index(read_dataset(tmp_path / "data"))
    assert (len(episodes[0]), episodes[0].success, episodes[0].meta["seed"]) == (5, True, 7)
    np.testing.assert_allclose(episodes[0].observations["joint_pos"], [[0.1 * k, 0.0] for k in range(6)], atol=1e-7)
    assert episodes[0].meta["gaps"]["/joint_states"] == {"received": 5, "lost": 0, "dropped": 0}
    assert (len(episodes[1]), episodes[1].truncated, episodes[1].success, episodes[1].meta["phase"]) == (4, True, None, "cut")


def test_killed_in_the_middle_of_an_episode_it_loses_that_one_and_the_next_recorder_appends(graph: Graph, tmp_path: Path) -> None:
    arm = _Arm(graph)
    process, _ = _recorder(graph, tmp_path)
    process.wait_line("recording episodes")
    arm.wait_heard()
    arm.begin(0)
    arm.end(0)
    process.wait_line("episode 1:")
    arm.begin(1)
    process.kill()
    assert list(_by_index(read_dataset(tmp_path / "data"))) == [0]
    second, diagnostics = _recorder(graph, tmp_path)
    second.wait_line("recording episodes")
    diagnostics.wait(lambda m: _value(m, "/episode") != "None")  # it hears the records of before, too
    arm.begin(2)
    arm.end(2)
    second.wait_line("episode 1: 5 steps")
    assert second.end() == 0
    assert list(_by_index(read_dataset(tmp_path / "data"))) == [0, 2]


def test_a_full_disk_ends_the_episode_with_an_error_and_the_next_one_is_recorded(graph: Graph, tmp_path: Path) -> None:
    arm = _Arm(graph)
    process, diagnostics = _recorder(graph, tmp_path)
    process.wait_line("recording episodes")
    arm.wait_heard()
    arm.begin(0)
    arm.end(0)
    process.wait_line("episode 1:")
    limits = resource.prlimit(process.process.pid, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    arm.begin(1)
    arm.end(1)
    process.wait_line("lost episode 1:")
    message = diagnostics.wait(lambda m: _value(m, "lost") == "1")
    assert len(json.loads(_value(message, "losses"))) == 1 and "episode 1: " in _value(message, "losses")
    assert message.status[0].level == b"\x02" and "lost episode 1" in message.status[0].message
    resource.prlimit(process.process.pid, resource.RLIMIT_FSIZE, limits)
    arm.begin(2)
    arm.end(2)
    process.wait_line("episode 2: 5 steps")
    assert process.end() == 0
    assert list(_by_index(read_dataset(tmp_path / "data"))) == [0, 2]
    assert not list((tmp_path / "data").glob("*.part"))


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        (MAPPING.replace("topic: /arm/goal", "topik: /arm/goal"), "action: unknown key topik"),
        (MAPPING.replace("bench_arm", "another_arm"), "contracts differ"),
    ],
)
def test_a_mapping_or_folder_that_does_not_fit_ends_it_at_once(graph: Graph, tmp_path: Path, mapping: str, said: str) -> None:
    from rl_core.data.formats.bag_mapping import read_mapping
    from rl_core.data.recording import EpisodeWriter

    (tmp_path / "held.yaml").write_text(MAPPING)
    held = read_mapping(tmp_path / "held.yaml").contract
    assert held is not None
    EpisodeWriter(tmp_path / "data", held)
    process, _ = _recorder(graph, tmp_path, mapping)
    process.wait_line(said)
    assert process.process.wait(10) == 1
