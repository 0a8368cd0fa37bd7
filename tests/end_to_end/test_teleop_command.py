"""`armstack teleop` in a terminal, as a person uses it, and its launch file."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from std_msgs.msg import String

from rl_core.data.formats import read_dataset
from robot_bridge.cli import main
from robot_bridge.launch_file import read_launch_file
from robot_bridge.nodes.qos import EVENTS
from tests.end_to_end.driver import value
from tests.ros_graph import ROOT, Graph

START_S, WAIT_S = 120.0, 40.0


def test_keys_in_a_terminal_move_the_simulated_arm_and_record_a_demonstration(graph: Graph, tmp_path: Path) -> None:
    statuses, poses = graph.collect(DiagnosticArray, "arm/status"), graph.collect(PoseStamped, "ee_pose")
    episodes = graph.collect(String, "episode", EVENTS)
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    command = [sys.executable, "-m", "robot_bridge.cli", "teleop", "--source", "keyboard", "--out", str(tmp_path / "demos")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    output = open(tmp_path / "output", "w")
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=slave, stdout=output, stderr=output)
    try:
        statuses.wait(timeout_s=START_S)
        os.write(master, b"tb")
        episodes.wait(lambda m: json.loads(m.data)["phase"] == "running", timeout_s=WAIT_S)
        statuses.wait(lambda m: value(m, "authority") == "teleop" and value(m, "state") == "moving", timeout_s=WAIT_S)
        start = poses.messages[-1].pose.position.y
        deadline = time.monotonic() + WAIT_S
        while poses.messages[-1].pose.position.y > start - 0.03:
            assert time.monotonic() < deadline, "the arm does not move to the right"
            os.write(master, b"d")  # as a terminal repeats a key that is held
            time.sleep(0.05)
        os.write(master, b"y")
        over = episodes.wait(lambda m: '"phase": "over"' in m.data and '"index": 0' in m.data, timeout_s=WAIT_S)
        assert json.loads(over.data)["success"] is True
        os.write(master, b"q")
        assert process.wait(WAIT_S) == 0
        assert termios.tcgetattr(slave) == before
    finally:
        process.kill()
        process.wait()
        output.close()
        os.close(master)
        os.close(slave)
    (episode,) = read_dataset(tmp_path / "demos").episodes
    assert episode.success and episode.meta["source"] == "teleop" and "correction" not in episode.meta
    assert np.ptp(episode.observations["eef_pos"][:, 1]) > 0.02 and episode.actions[:, 1].min() < -0.02
    shown = (tmp_path / "output").read_text()
    assert "take the arm over" in shown and "1 success" in shown


class Scripted:
    """`armstack teleop` that does what a script says, in a process of its own."""

    def __init__(self, folder: Path, script: str, *arguments: str) -> None:
        (folder / "script.yaml").write_text(script)
        self._output = open(folder / "output", "w")
        self.demos = folder / "demos"
        command = [sys.executable, "-m", "robot_bridge.cli", "teleop", "--source", "script", "--source-config", str(folder / "script.yaml")]
        self.process = subprocess.Popen(
            [*command, "--out", str(self.demos), *arguments],
            cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "400"},
            stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output,
        )  # fmt: skip

    @property
    def shown(self) -> str:
        return (self.demos.parent / "output").read_text()

    def wait_shown(self, text: str) -> None:
        deadline = time.monotonic() + START_S
        while text not in self.shown:
            assert time.monotonic() < deadline and self.process.poll() is None, self.shown
            time.sleep(0.05)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._output.close()


@pytest.fixture
def scripted(ros: int, tmp_path: Path) -> Iterator[Callable[..., Scripted]]:
    made: list[Scripted] = []

    def make(script: str, *arguments: str) -> Scripted:
        made.append(Scripted(tmp_path, script, *arguments))
        return made[-1]

    yield make
    for each in made:
        each.close()


DEMONSTRATION = "- {key: b}\n- {until: recording}\n- {delta: {z: 0.05}, for: 0.5}\n- {key: y}\n"


def test_the_last_page_tells_of_the_episode_that_was_marked_just_before_the_end(scripted: Callable[..., Scripted]) -> None:
    teleop = scripted("- {key: t}\n" + DEMONSTRATION + "- {key: q}\n")
    assert teleop.process.wait(START_S) == 0, teleop.shown
    assert re.search(r"recorded +1 in ", teleop.shown), teleop.shown
    (episode,) = read_dataset(teleop.demos).episodes
    assert (episode.success, episode.meta["phase"]) == (True, "over")  # though the end was asked for a moment before the command's


def test_an_episode_that_the_recorder_lost_is_named_and_the_command_fails(scripted: Callable[..., Scripted]) -> None:
    teleop = scripted("- {key: t}\n" + DEMONSTRATION + "- {wait: 5}\n" + DEMONSTRATION + "- {key: q}\n")
    teleop.wait_shown("episode 1: ")
    (pid,) = re.findall(r"episode_recorder-1: started with pid (\d+)", teleop.shown)
    resource.prlimit(int(pid), resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    assert teleop.process.wait(START_S) == 2, teleop.shown
    assert "LOST 1: episode 1: " in teleop.shown
    assert "armstack teleop: the recorder lost episode 1: " in teleop.shown.splitlines()[-1]


def test_ctrl_c_keeps_the_episode_under_way_as_cut_and_does_not_say_how_it_went(graph: Graph, scripted: Callable[..., Scripted]) -> None:
    poses = graph.collect(PoseStamped, "ee_pose")
    teleop = scripted("- {key: t}\n- {key: b}\n- {until: recording}\n- {delta: {z: 0.2}, for: 60}\n")
    start = poses.wait(timeout_s=START_S).pose.position.z
    poses.wait(lambda m: abs(m.pose.position.z - start) > 0.005, timeout_s=START_S)
    teleop.process.send_signal(signal.SIGINT)
    assert teleop.process.wait(WAIT_S) == 130
    assert "an episode under way with phase `cut`" in teleop.shown and "what was finished is kept" not in teleop.shown
    (episode,) = read_dataset(teleop.demos).episodes
    assert (episode.success, episode.meta["phase"]) == (None, "cut")


def test_when_the_arm_node_ends_at_its_start_the_last_line_repeats_why(scripted: Callable[..., Scripted]) -> None:
    teleop = scripted("- {key: t}\n", "--arm", "feetech")
    assert teleop.process.wait(START_S) == 2
    last = " ".join(teleop.shown.splitlines()[-1:])
    assert last.startswith(
        "armstack teleop: without the arm node nothing goes on: arm feetech: setting model, port, calibration is missing"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--source", "keyboard"], "standard input is no terminal"),
        (["--source", "leader"], "settings: arm, model, port, calibration, joints"),
        (["--source", "script"], "--source-config"),
        (["--source", "script", "--arm", "nosuch"], "--arm nosuch: no arm 'nosuch'; arms: simulated, franka"),
        (["--source", "script", "--task", "foo"], "--task foo: no task 'foo'; tasks: "),
        (["--source", "script", "--seed", "-5"], "--seed -5, valid: 0 or more"),
        (["--source", "script", "--arm-config", "nope.yaml"], "nope.yaml: no such file"),
        (["--source", "script", "--source-config", "nowhere.yaml"], "nowhere.yaml"),
        (["--source", "script", "--source-config", "launch/config/teleop_script.yaml", "--bundle", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_used_is_said_before_anything_is_started(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    with open(os.devnull) as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        assert main(["teleop", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error and "started with pid" not in error


def test_one_launch_file_starts_every_arm_its_leader_and_a_policy() -> None:
    file = ROOT / "launch" / "teleop.launch.yaml"
    plain = read_launch_file(file, {"arm": "feetech", "source_config": "leader.yaml", "namespace": "left"})
    assert [spec.name.rsplit("-", 1)[0] for spec in plain] == ["episode_recorder", "arm", "teleop"]
    assert all("__ns:=/left" in spec.command for spec in plain)
    assert 'source:="leader"' in plain[2].command and 'source_config:="leader.yaml"' in plain[2].command
    values = {"teleop": "false", "record": "false", "policy": "true", "bundle": "runs/b"}
    assert [spec.name.rsplit("-", 1)[0] for spec in read_launch_file(file, values)] == ["arm", "policy"]
