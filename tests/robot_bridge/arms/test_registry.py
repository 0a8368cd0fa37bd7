"""The registry of drivers, tightened limits, and the arm node's choice among them."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rclpy.parameter import Parameter
from std_msgs.msg import String

from rl_core.training.config import Config
from robot_bridge.arms import registry
from robot_bridge.arms.base import ArmLost, ArmState
from robot_bridge.arms.registry import ARMS, ArmEntry, ArmError, find_arm, make_arm, make_settings, require_library
from robot_bridge.arms.tightening import Tightening
from robot_bridge.commands.safety_report import effective
from robot_bridge.control.any_arm import SHARE
from robot_bridge.control.limits import LimitsError, panda_limits
from robot_bridge.nodes.arm_node import ArmNode
from robot_bridge.nodes.arm_offer import ArmOffer
from robot_bridge.nodes.json_requests import JsonClient, RequestError
from robot_bridge.nodes.qos import EVENTS, LATCHED
from robot_bridge.nodes.spin import NodeError, SpinThread
from sim_envs.arm.observation import world_contract
from sim_envs.arm.scene import kinematics_xml
from tests.robot_bridge.command_line import Cli
from tests.ros_graph import Graph, graph, ros

__all__ = ["graph", "ros"]
ROOT = Path(__file__).parents[3]


# -- the registry -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARMS)
def test_every_driver_takes_its_settings(name: str) -> None:
    entry = ARMS[name]
    module, _, driver = entry.driver.partition(":")
    parameters = getattr(importlib.import_module(module), driver).__init__.__annotations__
    assert {field.name for field in dataclasses.fields(entry.settings)} <= set(parameters)
    assert entry.settings.__dataclass_params__.frozen


def test_an_unknown_arm_lists_the_arms() -> None:
    with pytest.raises(ArmError, match=f"no arm 'frank'; arms: simulated, {', '.join(ARMS)}"):
        find_arm("frank")


@pytest.mark.parametrize(
    ("name", "values", "says"),
    [
        ("franka", {"host": "h", "gain": 3.0}, "no field 'gain'; valid: host, hardware, realtime, hand"),
        ("trossen", {}, "setting host is missing; settings: host"),
        ("trossen", {"host": ""}, "setting host is missing"),
        ("franka", {"host": "h", "hardware": "fr4"}, "hardware: 'fr4', valid: 'panda', 'fr3'"),
        ("ur", {"host": "h", "gain": "high"}, "gain: 'high' is str, valid: float"),
        ("franka", {"host": "h", "hand": 1}, "hand: 1 is int, valid: bool"),
    ],
)
def test_settings_that_do_not_fit_are_refused_and_the_valid_ones_named(name: str, values: dict[str, Any], says: str) -> None:
    with pytest.raises(ArmError, match=re.escape(says)):
        make_settings(name, values)


def test_a_whole_number_is_a_number_and_a_value_the_driver_refuses_names_the_arm() -> None:
    assert make_settings("ur", {"host": "h", "gain": 400}).gain == 400.0
    with pytest.raises(ArmError, match="arm ur: gain 5.0, valid: 100 .. 2000"):
        make_arm("ur", make_settings("ur", {"host": "h", "gain": 5}))


def test_a_missing_library_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ArmError, match=re.escape("pip install 'armstack[franka]'")):
        require_library("franka")


# -- tightening and the report ------------------------------------------------------------------------------------------------


def test_limits_are_tightened_and_never_widened() -> None:
    own = panda_limits()
    limits = Tightening(speed=0.5, workspace_min=(0.3, -0.2, 0.1)).apply(own)
    assert limits.velocity == tuple(v / 2 for v in own.velocity) and limits.workspace_min == (0.3, -0.2, 0.1)
    assert limits.workspace_max == own.workspace_max and Tightening().apply(own) == own
    for wide in (
        {"speed": 1.5},
        {"speed": float("nan")},
        {"speed": 0.0},
        {"workspace_min": (0.0, 0.0, 0.0)},
        {"workspace_max": (2.0, 1, 1)},
    ):
        with pytest.raises(LimitsError):
            Tightening(**wide).apply(own)


def test_the_report_says_who_set_each_limit() -> None:
    own = panda_limits()
    tightening = Tightening(speed=0.9, workspace_max=(0.8, 0.5, 0.8))
    rows = {
        (row.name, row.joint): row
        for row in effective(own, ARMS["franka"].vendor_limits, tightening, world_contract("lift", "joint_delta"))
    }
    assert rows["position_min", "panda_joint1"].source == "vendor" and rows["max_lead", "panda_joint1"].source == "armstack"
    assert rows["workspace_min", ""].source == "armstack" and rows["workspace_max", ""].source == "config"
    slowed = rows["velocity", "panda_joint1"]
    assert (slowed.value, slowed.source) == (0.9 * 2.175, "config")  # the contract asks for 0.1 rad in 0.05 s, more than that
    assert (rows["velocity", "panda_joint5"].value, rows["velocity", "panda_joint5"].source) == (2.0, "contract")


def test_the_command_prints_limits_and_what_happens_when_the_process_dies(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "arm.yaml"
    config.write_text("/**:\n  ros__parameters:\n    speed: 0.5\n    required_guards: [camera_guard]\n")
    outcome = cli("safety-report", "trossen", "--config", config, "--json")
    report = json.loads(outcome.out.splitlines()[-1])
    assert outcome.status == 0 and report["when_the_process_dies"].startswith("keeps its last target")
    assert report["required_guards"] == "camera_guard"
    assert {"name": "velocity", "joint": "joint_0", "value": 1.57, "source": "config"} in report["limits"]
    assert cli("safety-report", "franka").status == cli("safety-report", "simulated").status == 0
    refused = cli("safety-report", "frank")
    assert refused.status == 2 and "simulated, franka" in refused.err
    config.write_text("speed: 1\n")
    refused = cli("safety-report", "franka", "--config", config)
    assert refused.status == 2 and "ros__parameters" in refused.err


# -- the arm node's choice ----------------------------------------------------------------------------------------------------


class _Bench:
    """A Panda that follows at once, under a name of its own in the registry."""

    made: _Bench

    def __init__(self, *, host: str, gain: float = 1.0) -> None:
        self.host, self.gain = host, gain
        self.limits = panda_limits()
        self.joint_names = self.limits.names
        self.description = kinematics_xml()
        self.positions = np.array([0.0, -0.3, 0.0, -2.2, 0.0, 2.0, 0.8, 0.04])
        self.recoveries = 0
        self.broken = False
        _Bench.made = self

    def connect(self) -> None:
        if self.host == "nowhere":
            raise ArmLost("bench at nowhere: no route")

    def read(self) -> ArmState:
        return ArmState(
            stamp_ns=1, names=self.joint_names, positions=self.positions.copy(), velocities=np.zeros(8),
            ee_pos=np.zeros(3), ee_quat=np.array([0.0, 0.0, 0.0, 1.0]),
        )  # fmt: skip

    def command(self, positions: np.ndarray, period_s: float) -> None:
        self.positions = positions.copy()

    def recover(self) -> None:
        if self.broken:
            raise ArmLost("bench: the reflex stays")
        self.recoveries += 1

    def stop(self) -> None: ...

    def close(self) -> None: ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class _BenchSettings(Config):
    host: str
    gain: float = 1.0


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = ArmEntry(
        driver="bench_driver:_Bench", settings=_BenchSettings, library="numpy", extra="", when_process_dies="", vendor="", vendor_limits=()
    )
    monkeypatch.setattr(registry, "ARMS", {**ARMS, "bench": entry})
    monkeypatch.setitem(sys.modules, "bench_driver", SimpleNamespace(_Bench=_Bench))  # type: ignore[arg-type]


def _node(**parameters: Any) -> ArmNode:
    return ArmNode(parameter_overrides=[Parameter(name, value=value) for name, value in parameters.items()])


@pytest.fixture
def node(ros: int, bench: None) -> Iterator[ArmNode]:
    node = _node(arm="bench", host="10.0.0.9", gain=2, speed=0.5, task="sorting")
    with SpinThread(node, failure=node.failure):
        yield node
    node.close()
    node.destroy_node()


def test_the_arm_node_drives_the_arm_that_is_asked_for(graph: Graph, node: ArmNode) -> None:
    offer = ArmOffer.from_json(graph.collect(String, "arm/contract", LATCHED).wait().data)
    assert (_Bench.made.host, _Bench.made.gain) == ("10.0.0.9", 2.0)
    assert offer.sim_mode == "none" and offer.clock == "system" and offer.limits.velocity[0] == 2.175 / 2
    assert [contract.action.space for contract in offer.contracts] == ["end_effector", "joint", "end_effector"]
    assert offer.contracts[2].action.gripper == SHARE
    for kind, contract in zip(("ee_delta", "joint_delta"), offer.contracts[:2], strict=True):
        world = world_contract("reach", kind)  # type: ignore[arg-type]
        mine = dataclasses.replace(world, observation=world.observation[:5])
        mine.accepts(contract)  # what a policy of the worlds needs of the arm itself is offered
    episode = json.loads(graph.collect(String, "episode", EVENTS).wait(timeout_s=20).data)
    assert episode["phase"] == "running" and episode["task"] == "sorting"


def test_recovery_is_an_explicit_request(graph: Graph, node: ArmNode) -> None:
    client = JsonClient(graph.probe, "arm/recover")
    assert _Bench.made.recoveries == 0
    assert client.call({}, 20.0)["ok"] and _Bench.made.recoveries == 1
    _Bench.made.broken = True
    with pytest.raises(RequestError, match="the reflex stays"):
        client.call({}, 20.0)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"arm": "frank"}, "no arm 'frank'; arms: "),
        ({"arm": "bench"}, "arm bench: setting host is missing"),
        ({"arm": "bench", "host": "h", "lookahead_s": 0.1}, "no setting lookahead_s; settings: gain, host"),
        ({"arm": "bench", "host": "h", "sim_mode": "lockstep"}, "the simulated arm's"),
        ({"arm": "bench", "host": "h", "realtime_factor": 2.0}, "the simulated arm's"),
        ({"arm": "bench", "host": "h", "speed": 1.5}, "speed: 1.5"),
        ({"arm": "bench", "host": "h", "kinematics": "/no/file"}, "No such file"),
    ],
)
def test_a_choice_that_cannot_be_meant_ends_the_node_with_what_would_be_valid(
    ros: int, bench: None, parameters: dict[str, Any], says: str
) -> None:
    with pytest.raises(NodeError, match=re.escape(says)):
        _node(**parameters)


def test_an_arm_that_is_not_there_ends_the_node(ros: int, bench: None) -> None:
    with pytest.raises(NodeError, match="no route"):
        _node(arm="bench", host="nowhere")


def test_the_launch_file_names_every_driver(cli: Cli) -> None:
    outcome = cli("launch", "arm_policy", "--show-args")
    assert outcome.status == 0 and all(name in outcome.out for name in (*ARMS, "host", "bundle", "arm_config"))
