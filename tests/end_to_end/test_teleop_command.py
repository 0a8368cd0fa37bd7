"""`armstack teleop` in a terminal, as a person uses it, and its launch file."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import termios
import time
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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--source", "keyboard"], "standard input is no terminal"),
        (["--source", "leader"], "settings: arm, model, port, calibration, joints"),
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
