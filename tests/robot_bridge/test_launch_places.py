"""Where launch files and executables are found, and that each of ours is understood."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from robot_bridge.launch_file import read_launch_file
from robot_bridge.launch_places import PlaceError, executable, find_launch_file, launch_files, package_share
from tests.robot_bridge.command_line import Cli

ROOT = Path(__file__).resolve().parents[2]


def test_launch_files_are_found_by_name_and_by_path(tmp_path: Path) -> None:
    assert find_launch_file("sim_policy") == ROOT / "launch" / "sim_policy.launch.yaml"
    assert find_launch_file("sim_policy.launch.yaml") == ROOT / "launch" / "sim_policy.launch.yaml"
    file = tmp_path / "test.launch.yaml"
    file.write_text("launch: []\n")
    assert find_launch_file(str(file)) == file
    with pytest.raises(PlaceError, match="'nope' not found; give a path or one of .*sim_policy"):
        find_launch_file("nope")


def test_launch_files_are_found_in_an_installed_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share = tmp_path / "share" / "armstack" / "launch"
    share.mkdir(parents=True)
    (share / "installed.launch.yaml").write_text("launch: []\n")
    site_packages = tmp_path / "lib" / "python3.11" / "site-packages"
    site_packages.mkdir(parents=True)
    monkeypatch.setattr("robot_bridge.launch_places._SOURCE", site_packages)  # where pip and colcon put the package
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    assert package_share("armstack") == tmp_path / "share" / "armstack"
    assert find_launch_file("installed") == share / "installed.launch.yaml"


def test_an_executable_of_a_sourced_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "lib" / "other" / "their_node"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.pathsep.join([str(tmp_path / "none"), str(tmp_path)]))
    assert executable("other", "their_node") == (str(program),)


def test_every_launch_file_of_the_project_is_understood() -> None:
    policy = {"bundle": "runs/x", "record": "true"}
    own = {
        "aux": ({"method": "csr", "bundle": "runs/x"}, {"camera_front", "auxiliary"}),
        "guarded_pick": (
            {**policy, "guard_bundle": "runs/y", "classifier_bundle": "runs/z"},
            {"arm", "policy", "recorder", "camera_station", "classifier", "guard", "sorter"},
        ),
        "sim_policy": ({**policy, "viewer": "true"}, {"arm", "policy", "recorder", "camera_front"}),
        "arm_policy": ({**policy, "arm": "franka"}, {"arm", "policy", "recorder"}),
        "contractive_draw": (policy, {"arm", "policy", "recorder"}),
        "pear_pick": ({**policy, "viewer": "true"}, {"arm", "policy", "recorder", "camera_front"}),
        "dvfb_goals": (policy, {"arm", "policy", "recorder"}),
        "separation": (
            {"radar": "true", "error_m": "0.3", "latency_s": "0.2", "record": "true"},
            {"arm", "separation", "simulated_person", "human_radar", "policy", "recorder"},
        ),
        "teleop": ({"arm": "franka", "record": "true"}, {"arm", "teleop", "episode_recorder"}),
        "camera": ({"camera": "wrist"}, {"camera_wrist"}),
        "strap_policy": ({**policy, "cameras": "true"}, {"arm", "policy", "recorder", "camera_front", "camera_wrist"}),
    }
    files = {file.name.removesuffix(".launch.yaml"): file for file in (ROOT / "launch").glob("*.launch.yaml")}
    assert set(files) == set(own)
    for name, (arguments, nodes) in own.items():
        specs = read_launch_file(files[name], arguments)
        assert {spec.name.rpartition("-")[0] for spec in specs} == nodes
        # None goes on unrecorded when its recorder dies.
        assert all(spec.shutdown_on_exit for spec in specs if spec.name.startswith("recorder-"))


def test_help_lists_the_launch_files_and_says_what_one_takes(cli: Cli) -> None:
    names = cli("launch", "--help").out
    assert all(name in names for name in launch_files()) and len(launch_files()) >= 10
    assert cli("launch", "pear_pick", "--help").out == cli("launch", "pear_pick", "--show-args").out != ""
