"""Starting nodes: interrupted during the imports, without ROS, in no domain."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rl_core.errors import ArmstackError
from robot_bridge.launch_places import executable
from robot_bridge.launch_runner import main
from robot_bridge.ros_environment import prepare_ros_environment
from robot_bridge.ros_evaluation import evaluate_over_ros
from tests.end_to_end.policies import small_bundle
from tests.ros_graph import ROOT, own_domain


def test_a_node_that_is_interrupted_during_its_imports_ends_without_a_word() -> None:
    process = subprocess.Popen(executable("armstack", "policy_node"), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 30
    while "numpy" not in Path(f"/proc/{process.pid}/maps").read_text() and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT and output == ""


def test_without_rclpy_launch_evaluation_and_nodes_name_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = "import sys; sys.modules['rclpy'] = None; from robot_bridge.nodes.__main__ import start; sys.exit(start('arm_node'))"
    node = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert node.returncode == 2 and "armstack[ros]" in node.stderr and "Traceback" not in node.stderr
    monkeypatch.setitem(sys.modules, "rclpy", None)  # type: ignore[arg-type]
    with pytest.raises(ArmstackError, match=r"pip install 'armstack\[ros\]'"):
        main(["sim_policy", "bundle:=runs/x"])
    with pytest.raises(ArmstackError, match=r"pip install 'armstack\[ros\]'"):
        evaluate_over_ros(small_bundle(tmp_path / "bundle", hidden=(8,)), "lift", [1])


@pytest.mark.parametrize("domain", ["banana", "-1", "233"])
def test_a_domain_that_is_none_is_an_error_before_anything_is_started(monkeypatch: pytest.MonkeyPatch, domain: str) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", domain)
    with pytest.raises(ArmstackError, match=f"ROS_DOMAIN_ID: '{domain}', valid: a whole number from 0 to 232"):
        main(["sim_policy", "bundle:=runs/x"])
    command = executable("armstack", "arm_node")
    node = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "ROS_DOMAIN_ID": domain})
    assert node.returncode == 2 and "ROS_DOMAIN_ID" in node.stderr and "Traceback" not in node.stderr


@pytest.mark.parametrize("reach", ["LOCALHOST", "SUBNET"])
def test_nodes_share_no_memory_with_a_process_that_may_be_killed(reach):
    env = {**os.environ, "ROS_DOMAIN_ID": str(own_domain()), "ROS_AUTOMATIC_DISCOVERY_RANGE": reach}
    for name in ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTDDS_BUILTIN_TRANSPORTS"):
        env.pop(name, None)
    node = subprocess.Popen(
        executable("armstack", "arm_node"), cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert node.stdout is not None and any("ready" in line for line in node.stdout)
        names = {(thread / "comm").read_text().strip() for thread in Path(f"/proc/{node.pid}/task").iterdir()}
        assert any(name.startswith("dds.udp") for name in names)
        assert not any(name.startswith("dds.shm") for name in names)
    finally:
        node.kill()
        node.wait()


def test_transports_that_the_user_chose_are_left_alone():
    for chosen in ({"FASTDDS_BUILTIN_TRANSPORTS": "LARGE_DATA"}, {"FASTDDS_DEFAULT_PROFILES_FILE": "/etc/mine.xml"}):
        env = dict(chosen)
        prepare_ros_environment(env)
        assert env == chosen
