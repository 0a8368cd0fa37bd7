"""The examples do what they say."""

import re
import subprocess
import sys
from pathlib import Path

from tests.ros_graph import ROOT, Graph


def test_own_data_clones_a_robot_of_ones_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/own_data.py"), str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.splitlines()[-1].split()[0]) < 0.05
    assert (tmp_path / "run/bundle/bundle.json").is_file() and (tmp_path / "reach.hdf5").is_file()


def test_jog_arm_moves_the_joint_and_lets_go(graph: Graph) -> None:
    arm = graph.process("robot_bridge.nodes.arm_node", "--ros-args", "-p", "episodes:=on_request")
    arm.wait_line("ready")
    done = subprocess.run([sys.executable, str(ROOT / "examples/jog_arm.py")], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    moved = re.search(r"moved by ([0-9.]+) rad", done.stdout)
    assert moved and 0.05 < float(moved[1]) < 0.12
