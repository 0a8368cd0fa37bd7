"""An arm's parameter file: what is misspelt or of a wrong type in it is refused, never ignored in silence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from rclpy.parameter import Parameter

from robot_bridge.arm_parameters import OWN, ArmFileError, is_for, read_arm_file
from robot_bridge.nodes.arm_node import ArmNode
from robot_bridge.nodes.spin import NodeError
from tests.robot_bridge.command_line import Cli
from tests.ros_graph import ROOT, Graph, graph, ros

__all__ = ["graph", "ros"]


def _file(folder: Path, *lines: str, node: str = "/**") -> Path:
    path = folder / "my_arm.yaml"
    path.write_text("\n".join([f"{node}:", "  ros__parameters:", *(f"    {line}" for line in lines)]) + "\n")
    return path


MISSPELT = [
    ("franka", "sped: 0.1", "arm franka: no parameter sped (speed?); valid: "),
    ("franka", "workspace_mn: [0.3, -0.3, 0.1]", "workspace_mn (workspace_min?)"),
    ("franka", "required_guard: [camera]", "required_guard (required_guards?)"),
    ("feetech", "prot: /dev/ttyACM0", "prot (port?)"),
    ("simulated", "sped: 0.1", "arm simulated: no parameter sped (speed?)"),
    ("trossen", "model: ur5e", "arm trossen: no setting model; settings: host"),
]


@pytest.mark.parametrize(("arm", "line", "says"), MISSPELT)
def test_a_misspelt_parameter_is_refused_by_the_report(arm: str, line: str, says: str, cli: Cli, tmp_path: Path) -> None:
    refused = cli("safety-report", arm, "--config", _file(tmp_path, "separation_required: false", line))
    assert refused.status == 2 and says in refused.err and "my_arm.yaml" in refused.err


@pytest.mark.parametrize(("arm", "line", "says"), MISSPELT)
def test_a_misspelt_parameter_ends_the_arm_node(ros: int, arm: str, line: str, says: str) -> None:
    name, _, value = line.partition(": ")
    given: dict[str, Any] = {"arm": arm, name: float(value) if name == "sped" else value}
    with pytest.raises(NodeError, match=re.escape(says)):
        ArmNode(parameter_overrides=[Parameter(key, value=v) for key, v in given.items()])


def test_started_with_a_misspelt_file_the_arm_node_names_file_and_parameter(graph: Graph, tmp_path: Path) -> None:
    file = _file(tmp_path, "sped: 0.1")
    process = graph.process("robot_bridge.nodes.arm_node", "--ros-args", "--params-file", str(file))
    process.wait_line(f"{file}: arm simulated: no parameter sped (speed?)", timeout_s=60)
    assert process.process.wait(10) == 1


def test_a_file_for_another_node_is_no_file_of_the_arm_node(graph: Graph, tmp_path: Path, cli: Cli) -> None:
    file = _file(tmp_path, "speed: 0.1", node="/amr")
    refused = cli("safety-report", "franka", "--config", file)
    assert refused.status == 2 and "no parameters for the arm node: they are for /amr, valid: /** or /arm" in refused.err
    process = graph.process("robot_bridge.nodes.arm_node", "--ros-args", "--params-file", str(file), "-r", "__ns:=/left")
    process.wait_line("they are for /amr, valid: /** or /left/arm", timeout_s=60)
    assert process.process.wait(10) == 1


def test_a_parameter_that_any_other_node_does_not_read_ends_it(graph: Graph, tmp_path: Path) -> None:
    arguments = ("-p", f"foldr:={tmp_path}", "-p", "use_sim_time:=false", "-p", "qos_overrides./episode.publisher.depth:=3")
    process = graph.process("robot_bridge.nodes.episode_recorder_node", "--ros-args", "-p", f"folder:={tmp_path / 'data'}", *arguments)
    line = process.wait_line("no parameter foldr (folder?)", timeout_s=60)
    assert "qos_overrides" not in str(line)
    assert process.process.wait(10) == 1


def test_a_file_may_hold_parameters_of_several_nodes(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(
        "/**: {ros__parameters: {use_sim_time: false}}\narm: {ros__parameters: {speed: 0.5, host: ''}}\n"
        "left: {camera: {ros__parameters: {serial: X}}}\n"
    )
    assert read_arm_file(file, "simulated") == {"use_sim_time": False, "speed": 0.5, "host": ""}


@pytest.mark.parametrize(
    ("section", "node", "meant"),
    [
        ("/**", "/left/arm", True),
        ("/arm", "/arm", True),
        ("/arm", "/left/arm", False),
        ("/*/arm", "/left/arm", True),
        ("/**/arm", "/arm", True),
        ("/*", "/left/arm", False),
        ("/left/arm", "/left/arm", True),
    ],
)
def test_sections_are_matched_as_ros_does(section: str, node: str, meant: bool) -> None:
    assert is_for(section, node) is meant


@pytest.mark.parametrize("config", sorted(path.name for path in (ROOT / "launch/config").glob("*arm.yaml")))
def test_the_files_that_come_with_it_are_in_order(config: str) -> None:
    assert read_arm_file(ROOT / "launch/config" / config, "simulated")["separation_required"] is (config == "separation_arm.yaml")


def test_the_names_are_those_that_the_node_declares(ros: int, monkeypatch: pytest.MonkeyPatch) -> None:
    declared: list[str] = []
    declare = ArmNode.declare_parameter

    def noted(self: ArmNode, name: str, *arguments: Any, **options: Any) -> Any:
        declared.append(name)
        return declare(self, name, *arguments, **options)

    monkeypatch.setattr(ArmNode, "declare_parameter", noted)
    node = ArmNode()
    node.close()
    node.destroy_node()
    assert set(declared) - {"use_sim_time", "start_type_description_service"} == set(OWN) - {"kinematics"}  # of driven arms alone


def test_a_box_whose_corner_is_the_origin_is_not_taken_for_none(ros: int) -> None:
    with pytest.raises(NodeError, match="workspace_min .* lies outside the arm's"):
        ArmNode(parameter_overrides=[Parameter("workspace_min", value=[0.0, 0.0, 0.0])])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("/**: {ros__parameters: {speed: fast}}", "ArmParameters.speed: 'fast' is str, valid: float"),
        ("/**: {ros__parameters: {required_guards: camera}}", "required_guards: 'camera' is str"),
        ("/**: {ros__parameters: {realtime: 'yes'}}", "FrankaSettings.realtime: 'yes' is str, valid: bool"),
        ("/**: {speed: 0.1}", "/**/speed: 0.1, valid: under ros__parameters of a node"),
        ("speed: 0.1", "ros__parameters"),
        ("- 1", "ros__parameters"),
        ("", "ros__parameters"),
        ("/**: {ros__parameters: [1]}", "/**/ros__parameters: [1]"),
        ("/**:\n  ros__parameters:\n  speed: [0.1", "line 3, column"),
    ],
)
def test_a_file_that_cannot_be_meant_is_named_with_what_is_wrong(text: str, says: str, cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "my_arm.yaml"
    path.write_text(text)
    refused = cli("safety-report", "franka", "--config", path)
    assert refused.status == 2 and says in refused.err and str(path) in refused.err and "unicode string" not in refused.err


def test_no_such_file_is_said(tmp_path: Path, cli: Cli) -> None:
    refused = cli("safety-report", "franka", "--config", tmp_path / "nope.yaml")
    assert refused.status == 2 and f"{tmp_path / 'nope.yaml'}: no such file" in refused.err
    with pytest.raises(ArmFileError, match="not readable"):
        read_arm_file(tmp_path, "franka")
