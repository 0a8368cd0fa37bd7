"""Armstack as pip and colcon install it."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.ros_graph import own_domain

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def clean_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source tree without what builds and runs leave behind."""
    tree = tmp_path_factory.mktemp("source") / "armstack"
    ignore = shutil.ignore_patterns(".venv*", ".git", "runs", "build", "install", "log", "*.egg-info", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, tree, ignore=ignore)
    return tree


def run(command: list[str], **options) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def test_every_node_is_installed() -> None:
    folder = ROOT / "robot_bridge/nodes"
    nodes = {path.stem for path in folder.glob("*_node.py") if "return run(" in path.read_text()}
    listed = {
        name for line in (ROOT / "setup.py").read_text().splitlines() if line.startswith("NODES") for name in re.findall(r'"(\w+)"', line)
    }
    assert listed == nodes
    assert all(callable(getattr(importlib.import_module("robot_bridge.nodes.__main__"), name)) for name in nodes)


def _start_and_end(node: str, *, cwd: Path, environment: dict[str, str]) -> None:
    """The node comes up, and SIGTERM ends it within two seconds."""
    own_graph = {"ROS_DOMAIN_ID": str(own_domain()), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [node], cwd=cwd, env={**environment, **own_graph}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "ready" in line:
                break
        assert lines and "ready" in lines[-1], "".join(lines)
        process.terminate()
        assert process.wait(timeout=2.0) == 0
    finally:
        process.kill()
        process.wait()


def test_colcon_build_gives_nodes_and_launch_files(clean_tree: Path, tmp_path: Path) -> None:
    colcon = Path(sys.executable).with_name("colcon")
    run([str(colcon), "build", "--base-paths", str(clean_tree)], cwd=tmp_path, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    install = tmp_path / "install" / "armstack"
    assert (install / "share/armstack/launch/sim_policy.launch.yaml").is_file()
    assert (install / "share/ament_index/resource_index/packages/armstack").is_file()
    site = next(install.glob("lib/python3*/site-packages"))
    # From install/ alone: outside the source tree, the package's modules come from the colcon prefix.
    environment = {**os.environ, "PYTHONPATH": str(site), "AMENT_PREFIX_PATH": str(install)}
    where = run([sys.executable, "-P", "-c", "import robot_bridge; print(robot_bridge.__file__)"], cwd=tmp_path, env=environment)
    assert where.stdout.strip().startswith(str(install))
    for node in ("arm_node", "policy_node", "recorder_node", "camera_node"):
        assert (install / "lib/armstack" / node).is_file()
    _start_and_end(str(install / "lib/armstack/arm_node"), cwd=tmp_path, environment=environment)
    help_text = run([str(install / "lib/armstack/armstack"), "launch", "sim_policy", "--show-args"], cwd=tmp_path, env=environment)
    assert "bundle" in help_text.stdout + help_text.stderr


@pytest.mark.timeout(900)  # downloads and unpacks all of PyTorch
def test_pip_install_without_compiler_then_doctor_and_train(clean_tree: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    binaries = tmp_path / "venv" / "bin"
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {"PATH": f"{binaries}:/bin", "CC": "/nonexistent/cc", "CXX": "/nonexistent/c++", "OMP_NUM_THREADS": "1"}
    pip = [str(binaries / "pip"), "install", "--quiet", "--no-compile", "-c", str(clean_tree / "constraints.txt"), str(clean_tree)]
    run(pip, cwd=tmp_path, env=environment)
    armstack = str(binaries / "armstack")
    report = run([armstack, "doctor", "--json"], cwd=tmp_path, env=environment)
    findings = json.loads(report.stdout.splitlines()[-1])["findings"]
    assert not [finding for finding in findings if finding["level"] == "error"]
    collect = [armstack, "collect", "--out", "data", "--plan.episodes", "3", "--plan.horizon", "20", "--processes", "1", "--json"]
    collected = json.loads(run(collect, cwd=tmp_path, env=environment).stdout.splitlines()[-1])
    assert collected["episodes"] == 3
    train = [armstack, "train", "dac", "--dataset", "data", "--run-dir", "run", "--preset", "demo", "--updates", "20", "--json"]
    run(train, cwd=tmp_path, env=environment)
    assert (tmp_path / "run/bundle/bundle.json").is_file()
    # The launch files are where `armstack launch` finds them, without the source tree.
    shown = run([armstack, "launch", "sim_policy", "--show-args"], cwd=tmp_path, env=environment)
    assert "bundle" in shown.stdout + shown.stderr
