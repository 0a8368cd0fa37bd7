"""An arm of the user's own: the how-to page, the description in URDF or MJCF and YAML, and `module:class`."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from robot_bridge.arms.description import DescriptionError, describe_arm
from robot_bridge.arms.registry import ArmError, find_arm, make_arm, make_settings
from robot_bridge.control.any_arm import any_arm_contract
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.nodes.arm_node import ArmNode
from robot_bridge.nodes.arm_offer import ArmOffer
from robot_bridge.nodes.json_requests import JsonClient
from robot_bridge.nodes.messages import trajectory
from robot_bridge.nodes.qos import LATCHED, STREAM, advertise
from robot_bridge.nodes.spin import SpinThread
from robot_bridge.nodes.stamps import to_ns
from sim_envs.arm.observation import world_contract
from sim_envs.arm.scene import kinematics_xml
from tests.robot_bridge.command_line import Cli
from tests.ros_graph import ROOT, Graph, graph, ros

__all__ = ["graph", "ros"]
EXAMPLE = ROOT / "examples/add_my_arm"


@pytest.fixture
def my_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLE)
    monkeypatch.delitem(sys.modules, "my_arm", raising=False)


def test_the_page_shows_the_files_that_are_run_here() -> None:
    page = (ROOT / "docs/how-to/add-my-arm.md").read_text()
    shown = dict(re.findall(r"```(yaml|python)\n(.*?)```", page, re.DOTALL))
    assert shown["yaml"] == (EXAMPLE / "my_arm.yaml").read_text()
    assert shown["python"] == (EXAMPLE / "my_arm.py").read_text()
    driver = shown["python"].partition("class Controller")[0]
    assert len((driver + shown["yaml"]).splitlines()) <= 50


def test_the_arm_node_drives_it_and_offers_what_every_arm_does(graph: Graph, my_arm: None) -> None:
    overrides = [Parameter(name, value=value) for name, value in {"arm": "my_arm:MyArm", "host": "10.0.0.2", "speed": 0.5}.items()]
    node = ArmNode(parameter_overrides=overrides)
    with SpinThread(node, failure=node.failure):
        offer = ArmOffer.from_json(graph.collect(String, "arm/contract", LATCHED).wait(timeout_s=20).data)
        assert offer.limits.names == ("pan", "lift", "elbow", "roll", "pitch", "twist", "jaw")
        assert offer.limits.velocity[:4] == (1.0, 1.0, 1.0, 1.25) and offer.limits.position_max[0] == 3.1
        assert offer.contract_for(any_arm_contract(world_contract("reach"))).action.space == "end_effector"
        states = graph.collect(JointState, "joint_states")
        commands = advertise(graph.probe, JointTrajectory, "arm/command", STREAM)
        first = states.wait(timeout_s=20)
        JsonClient(graph.probe, "arm/authority").call({"op": "take", "source": "policy"}, 20.0)
        target = np.array(first.position) + np.array([0.1, 0, 0, 0, 0, 0, 0])
        for _ in range(200):
            stamp_ns = to_ns(states.messages[-1].header.stamp)
            commands.publish(trajectory(first.name, target[None], np.array([0.1]), stamp_ns=stamp_ns, source="policy"))
            seen = len(states.messages)
            if states.wait(after=seen + 1).position[0] > first.position[0] + 0.09:
                break
        else:
            pytest.fail("the arm did not move")
    node.close()
    node.destroy_node()


def test_the_report_knows_it(cli: Cli, my_arm: None) -> None:
    outcome = cli("safety-report", "my_arm:MyArm", "--json")
    report = json.loads(outcome.out.splitlines()[-1])
    assert outcome.status == 0 and report["when_the_process_dies"] == "keeps its last target: no watchdog"
    assert {"name": "velocity", "joint": "pan", "value": 2.0, "source": "vendor"} in report["limits"]


# -- module:class -------------------------------------------------------------------------------------------------------------

BAD = """
class Empty:
    pass

class Positional:
    def __init__(self, host: str): ...
    def connect(self): ...
    read = command = stop = close = connect

class Untyped:
    def __init__(self, *, host): ...
    def connect(self): ...
    read = command = stop = close = connect

class NoLimits:
    def __init__(self, *, host: str = "h"): ...
    def connect(self): ...
    read = command = stop = close = connect
"""


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "no_such_module:Arm",
            "module 'no_such_module' cannot be imported (No module named 'no_such_module'); valid: one that is installed",
        ),
        ("bad_arms:Nothing", "bad_arms has no class 'Nothing'; classes: Empty, Positional, Untyped, NoLimits"),
        ("bad_arms:Empty", "connect, read, command, stop, close missing; an arm has the methods"),
        ("bad_arms:Positional", "constructor argument host, valid: keyword-only arguments with a type"),
        ("bad_arms:Untyped", "constructor argument host, valid: keyword-only arguments with a type"),
        ("bad_arms:NoLimits", "attribute limits, joint_names missing"),
    ],
)
def test_a_class_that_is_no_arm_is_refused_with_what_it_lacks(
    name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad_arms.py").write_text(BAD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "bad_arms", raising=False)
    importlib.invalidate_caches()
    with pytest.raises(ArmError, match=re.escape(says)):
        find_arm(name)
        make_arm(name, make_settings(name, {}))


def test_its_settings_are_checked_like_any_arms(my_arm: None) -> None:
    with pytest.raises(ArmError, match="setting host is missing; settings: host, description"):
        make_settings("my_arm:MyArm", {})
    with pytest.raises(ArmError, match="no field 'hots'; valid: host, description"):
        make_settings("my_arm:MyArm", {"host": "h", "hots": "x"})
    with pytest.raises(ArmError, match="arm my_arm:MyArm: .*nowhere.yaml"):
        make_arm("my_arm:MyArm", make_settings("my_arm:MyArm", {"host": "h", "description": "nowhere.yaml"}))


# -- the description ----------------------------------------------------------------------------------------------------------


def _written(folder: Path, **changed: Any) -> Path:
    """The example's description with fields changed; None leaves one out."""
    shutil.copy(EXAMPLE / "my_arm.urdf", folder)
    lines = dict(line.split(": ", 1) for line in (EXAMPLE / "my_arm.yaml").read_text().splitlines())
    lines |= changed
    file = folder / "arm.yaml"
    file.write_text("".join(f"{name}: {text}\n" for name, text in lines.items() if text is not None))
    return file


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"robot": "other.urdf"}, "No such file"),
        ({"tool": "nose"}, "tool: 'nose', valid: a link, body or site: ['world', 'base_link', 'turret'"),
        ({"joints": "[pan, hip]"}, "joints: ['pan', 'hip'], valid: some of ['pan', 'lift'"),
        ({"joints": "[tool]"}, "valid: some of ['pan'"),  # a fixed joint
        ({"velocity": None}, "velocity: my_arm.urdf states none of pan; give it here, e.g. velocity: {pan: 2.0}"),
        ({"range": None}, "range: my_arm.urdf states none of pan; give it here, e.g. range: {pan: [-1.5, 1.5]}"),
        ({"range": "{pan: [-3.1, 3.1], lift: [-2.0, 1.0]}"}, "range: {'lift': [-2.0, 1.0]} is wider than my_arm.urdf states"),
        ({"velocity": "{pan: 2.0, elbow: 9.0}"}, "velocity: {'elbow': 9.0} is wider than my_arm.urdf states, {'elbow': 2.0}"),
        ({"velocity": "{pan: .nan}"}, "velocity of pan: nan, valid: a number"),
        ({"velocity": "{hip: 1.0}"}, "velocity: hip, valid: pan, lift"),
        ({"range": "{pan: 3.1}"}, "range of pan: 3.1, valid: [low, high]"),
        ({"range": "{pan: [3.1, -3.1]}"}, "position_min 3.1 is not below position_max -3.1"),
        ({"acceleration": "{pan: 4.0}"}, "acceleration: missing for lift, elbow, roll, pitch, twist; valid: one number, or one for each"),
        ({"acceleration": "0"}, "acceleration: 0.0, valid: finite numbers above 0"),
        ({"jerk": None}, "valid: robot, joints, tool, acceleration, jerk, workspace, and optionally velocity, range, gripper"),
        ({"jrek": "3"}, "'jrek'"),
        ({"workspace": "[0, 1]"}, "workspace: [0, 1], valid: min and max"),
        ({"gripper": "{name: jaw}"}, "gripper: {'name': 'jaw'}, valid: name, open, closed, velocity"),
    ],
)
def test_what_is_missing_or_cannot_be_meant_is_asked_for_by_name(changed: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=re.escape(says)) as refused:
        describe_arm(_written(tmp_path, **changed))
    assert str(tmp_path / "arm.yaml") in str(refused.value)


def test_only_the_joints_listed_move_and_limits_come_from_the_urdf(tmp_path: Path) -> None:
    described = describe_arm(
        _written(tmp_path, joints="[elbow, pan, lift]", gripper=None, velocity="{pan: 2.0, elbow: 1.5}", range="{pan: [-3, 3]}")
    )
    kinematics = Kinematics(described.mjcf)
    assert described.limits.names == kinematics.joint_names == ("pan", "lift", "elbow")
    assert described.limits.velocity == (2.0, 2.0, 1.5) and described.limits.position_min == (-3.0, -1.8, -2.5)
    assert described.limits.gripper is None and described.limits.stop_acceleration == (8.0,) * 3
    position, _ = kinematics.fk(np.zeros(3))
    assert position == pytest.approx([0, 0, 0.1 + 0.3 + 0.15 + 0.15 + 0.05 + 0.12])


def test_an_mjcf_in_degrees_with_shapes_and_motors_gives_the_same_arm(tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text(
        """<mujoco><compiler angle="degree"/><asset><mesh name="hull" file="not_here.stl"/></asset><worldbody><body name="base">
        <body name="one" pos="0 0 0.2" euler="90 0 0"><joint name="a" axis="0 0 1" range="-90 45"/><geom type="mesh" mesh="hull"/>
        <body name="two" pos="0.3 0 0"><joint name="b" axis="0 0 1"/><geom size="0.1"/><joint name="finger" type="slide"/></body>
        </body></body></worldbody><actuator><motor joint="a"/></actuator></mujoco>"""
    )
    file = tmp_path / "arm.yaml"
    file.write_text(
        "robot: arm.xml\njoints: [a, b]\ntool: two\nacceleration: 4\njerk: 200\nvelocity: {a: 1, b: 2}\nrange: {b: [-1, 1]}\n"
        "workspace: {min: [-1, -1, -1], max: [1, 1, 1]}\n"
    )
    described = describe_arm(file)
    assert described.limits.position_min == pytest.approx((-np.pi / 2, -1.0)) and described.limits.position_max == pytest.approx(
        (np.pi / 4, 1)
    )
    position, _ = Kinematics(described.mjcf).fk(np.array([np.pi / 6, 0.0]))
    assert position == pytest.approx([0.3 * np.cos(np.pi / 6), 0.0, 0.2 + 0.3 * np.sin(np.pi / 6)])


def test_the_worlds_panda_described_by_its_mjcf_is_the_worlds_panda(tmp_path: Path) -> None:
    shutil.copy(ROOT / "sim_envs/arm/models/panda.xml", tmp_path)
    names = [f"panda_joint{i}" for i in range(1, 8)]
    file = tmp_path / "arm.yaml"
    file.write_text(
        f"robot: panda.xml\njoints: {names}\ntool: ee\nacceleration: 4\njerk: 200\nvelocity: 2\n"
        "workspace: {min: [-1, -1, -1], max: [1, 1, 1]}\n"
    )
    ours, worlds = Kinematics(describe_arm(file).mjcf), Kinematics(kinematics_xml())
    joints = np.array([0.1, -0.3, 0.2, -2.0, 0.1, 1.9, 0.7])
    for found, expected in zip(ours.fk(joints), worlds.fk(joints), strict=True):
        assert found == pytest.approx(expected, abs=1e-9)
