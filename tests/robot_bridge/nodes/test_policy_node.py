"""The policy node over a real graph, in the process of the test."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.parameter import Parameter
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger
from tensordict import TensorDict
from trajectory_msgs.msg import JointTrajectory

from rl_core.contract import RobotContract
from rl_core.policy import ActionChunk, Policy, PolicyState
from robot_bridge.nodes.arm_node import ArmNode
from robot_bridge.nodes.json_requests import JsonClient
from robot_bridge.nodes.messages import diagnostic
from robot_bridge.nodes.policy_node import PolicyNode
from robot_bridge.nodes.qos import EVENTS, advertise
from robot_bridge.nodes.spin import NodeError, SpinThread
from robot_bridge.nodes.stamps import to_ns
from robot_bridge.nodes.start_gate import StartGate
from sim_envs.arm.observation import world_contract
from tests.end_to_end.driver import arm_node, value
from tests.end_to_end.policies import RandomWalk
from tests.ros_graph import Graph, spun


@contextmanager
def policy_node(policy: Policy, **parameters: Any) -> Iterator[PolicyNode]:
    node = PolicyNode(policy=policy, parameter_overrides=[Parameter(name, value=v) for name, v in parameters.items()])
    with spun(node):
        yield node


def _gentle(contract: RobotContract | None = None) -> RandomWalk:
    return RandomWalk(contract or world_contract("lift"), size=0.1)


def _reset(graph: Graph, seed: int) -> dict[str, Any]:
    return JsonClient(graph.probe, "episode").call({"op": "reset", "seed": seed}, 20.0)


def test_figures_of_every_stage_are_told_without_the_warm_up(graph: Graph) -> None:
    diagnostics = graph.collect(DiagnosticArray, "diagnostics")
    commands = graph.collect(JointTrajectory, "arm/command")
    with arm_node(), policy_node(_gentle()) as node:
        _reset(graph, 1)
        commands.wait(after=40)
        message = diagnostics.wait(
            lambda m: m.status[0].name == "policy latency" and "publish_p99_ms" in str(m.status[0].values), after=len(diagnostics.messages)
        )
        worker = node._worker
        assert worker is not None and worker.latency.periods > 20
    values = {pair.key: pair.value for pair in message.status[0].values}
    for stage in ("observation_age", "inference", "decode", "publish"):
        assert 0 <= float(values[f"{stage}_p50_ms"]) <= float(values[f"{stage}_p95_ms"]) <= float(values[f"{stage}_p99_ms"])
    assert {"periods", "missed", "skipped"} <= set(values)


def test_deactivating_stops_the_arm_and_activating_goes_on(graph: Graph) -> None:
    statuses = graph.collect(DiagnosticArray, "arm/status")
    commands = graph.collect(JointTrajectory, "arm/command")
    with arm_node(horizon=10_000), policy_node(_gentle(), autostart=False) as node:
        _reset(graph, 1)
        statuses.wait(after=len(statuses.messages) + 3)
        assert not commands.messages
        node.trigger_configure()
        node.trigger_activate()
        statuses.wait(lambda m: value(m, "state") == "moving", after=len(statuses.messages))
        node.trigger_deactivate()
        sent = len(commands.messages)
        statuses.wait(lambda m: value(m, "state") == "holding", after=len(statuses.messages))
        node.trigger_activate()
        commands.wait(after=sent + 5)
        statuses.wait(lambda m: value(m, "state") == "moving", after=len(statuses.messages) - 1)


def test_a_policy_for_another_robot_ends_with_both_sides_of_the_difference(graph: Graph) -> None:
    import dataclasses

    contract = world_contract("lift")
    other = dataclasses.replace(contract, action=dataclasses.replace(contract.action, frame="tool"))
    with arm_node(), policy_node(_gentle(other)) as node:
        deadline = time.monotonic() + 10
        with pytest.raises(NodeError, match="action.frame: needs 'tool', offered 'base'"):
            while time.monotonic() < deadline:
                node.failure.raise_reported()
                time.sleep(0.02)


def test_a_missing_bundle_is_said_at_once(graph: Graph) -> None:
    process = graph.process("robot_bridge.nodes.policy_node", "--ros-args", "-p", "bundle:=runs/no/such/bundle")
    assert process.process.wait(60) == 1
    process.wait_line("runs/no/such/bundle")


class _NotANumber(RandomWalk):
    """Gives NaN from its tenth action on."""

    calls = 0

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        chunk, after = super().act(obs, condition, state)
        self.calls += 1
        if self.calls < 15:
            return chunk, after
        return ActionChunk(values=torch.full_like(chunk.values, torch.nan), period_s=chunk.period_s, execute=1), after


def test_a_nan_action_is_never_sent_and_the_arm_holds(graph: Graph) -> None:
    statuses = graph.collect(DiagnosticArray, "arm/status")
    with arm_node(), policy_node(_NotANumber(world_contract("lift"), size=0.1)) as node:
        _reset(graph, 1)
        statuses.wait(lambda m: value(m, "state") == "moving")
        deadline = time.monotonic() + 10
        with pytest.raises(NodeError, match="finite numbers.*the arm holds"):
            while time.monotonic() < deadline:
                node.failure.raise_reported()
                time.sleep(0.02)
        status = statuses.wait(lambda m: value(m, "state") == "holding", after=len(statuses.messages))
        assert "not_finite" not in json.loads(value(status, "counts"))


class _Operator:
    """What a person at the arm can do, and whether it stands still meanwhile."""

    def __init__(self, graph: Graph) -> None:
        self.statuses = graph.collect(DiagnosticArray, "arm/status")
        self.diagnostics = graph.collect(DiagnosticArray, "diagnostics")
        self._button = advertise(graph.probe, Bool, "/e_stop")
        self._rearm = graph.probe.create_client(Trigger, "arm/rearm")
        self._start = graph.probe.create_client(Trigger, "policy/start")

    def wait_state(self, state: str) -> DiagnosticArray:
        message: DiagnosticArray = self.statuses.wait(lambda m: value(m, "state") == state, after=len(self.statuses.messages) - 1)
        return message

    def press(self) -> None:
        """E-stop, until it may be rearmed."""
        self._button.publish(Bool(data=True))
        start_ns = to_ns(self.wait_state("stopped").header.stamp)
        self.statuses.wait(lambda m: to_ns(m.header.stamp) > start_ns + 1_100_000_000, after=len(self.statuses.messages) - 1)

    def rearm(self) -> None:
        assert self._call(self._rearm).success
        self.wait_state("holding")

    def start(self) -> Trigger.Response:
        return self._call(self._start)

    def assert_still(self, messages: int = 12) -> None:
        """Nobody moves the arm while so many further messages of its status come, at 10 Hz."""
        begin = len(self.statuses.messages)
        self.statuses.wait(after=begin + messages)
        assert {value(m, "state") for m in self.statuses.messages[begin:]} <= {"holding", "stopped"}

    def _call(self, client: Any) -> Trigger.Response:
        assert client.wait_for_service(10.0)
        future = client.call_async(Trigger.Request())
        deadline = time.monotonic() + 10
        while not future.done() and time.monotonic() < deadline:
            time.sleep(0.01)
        response = future.result()
        assert response is not None
        return response


def test_in_lockstep_time_goes_on_while_stopped_and_the_policy_goes_on_only_after_it_is_started(graph: Graph) -> None:
    operator = _Operator(graph)
    episodes = graph.collect(String, "episode", EVENTS)
    parameters = {"sim_mode": "lockstep", "episodes": "on_request", "horizon": 150}
    arm = ArmNode(parameter_overrides=[Parameter(name, value=v) for name, v in parameters.items()])
    with SpinThread(arm, failure=arm.failure), policy_node(_gentle()) as node:
        _reset(graph, 1)
        operator.wait_state("moving")
        operator.press()
        operator.rearm()
        operator.assert_still()
        assert operator.start().success
        operator.wait_state("moving")
        episodes.wait(lambda m: json.loads(m.data)["phase"] == "over", timeout_s=60)
        node.failure.raise_reported()
    arm.close()
    arm.destroy_node()


def test_after_an_e_stop_motion_never_goes_on_by_itself(graph: Graph) -> None:
    """Not after the rearm, not in an episode that was asked for while stopped; a start goes on, so does an episode asked for later."""
    operator = _Operator(graph)
    with arm_node(horizon=10_000) as arm, policy_node(_gentle()):
        _reset(graph, 1)
        operator.wait_state("moving")
        operator.press()
        refused = operator.start()
        assert not refused.success and "rearm it first" in refused.message
        _reset(graph, 2)
        operator.rearm()
        operator.assert_still()
        waits = operator.diagnostics.wait(
            lambda m: m.status[0].name == "policy latency" and "policy/start" in m.status[0].message,
            after=len(operator.diagnostics.messages) - 3,
        )
        assert "the arm was in state stopped" in waits.status[0].message
        assert operator.start().success
        operator.wait_state("moving")
        arm.loop.fault("the driver said no")
        operator.wait_state("fault")
        operator.rearm()
        operator.assert_still()
        _reset(graph, 3)
        operator.wait_state("moving")


def test_after_a_stop_activating_anew_is_a_start(graph: Graph) -> None:
    operator = _Operator(graph)
    with arm_node(horizon=10_000), policy_node(_gentle()) as node:
        _reset(graph, 1)
        operator.wait_state("moving")
        operator.press()
        operator.rearm()
        operator.assert_still()
        node.trigger_deactivate()
        node.trigger_activate()
        operator.wait_state("moving")


def test_after_a_lost_arm_node_the_policy_waits_at_the_next_one(graph: Graph) -> None:
    operator = _Operator(graph)
    with policy_node(_gentle()) as node:
        with arm_node(horizon=10_000):
            _reset(graph, 1)
            operator.wait_state("moving")
        with arm_node(horizon=10_000, episodes="forever"):
            operator.wait_state("holding")
            operator.assert_still()
            assert operator.start().success
            operator.wait_state("moving")
            node.failure.raise_reported()


def test_after_a_hold_of_a_guard_the_policy_goes_on_by_itself(graph: Graph) -> None:
    operator = _Operator(graph)
    guard = advertise(graph.probe, DiagnosticArray, "safety/holds")
    with arm_node(horizon=10_000), policy_node(_gentle()):
        _reset(graph, 1)
        operator.wait_state("moving")
        guard.publish(DiagnosticArray(status=[diagnostic("guard", {}, level=DiagnosticStatus.ERROR, message="a person is near")]))
        operator.wait_state("holding")
        operator.assert_still()
        guard.publish(DiagnosticArray(status=[diagnostic("guard", {}, level=DiagnosticStatus.OK)]))
        operator.wait_state("moving")


def test_a_person_who_took_the_arm_over_keeps_it_until_it_is_released(graph: Graph) -> None:
    """Silent for more than a second, the person's authority could be had for the asking; the policy does not ask."""
    operator = _Operator(graph)
    authority = JsonClient(graph.probe, "arm/authority")
    with arm_node(horizon=10_000), policy_node(_gentle()):
        _reset(graph, 1)
        operator.wait_state("moving")
        authority.call({"op": "take", "source": "teleop", "sender": "ff"}, 5.0)
        operator.wait_state("holding")
        operator.assert_still(20)
        refused = operator.start()
        assert not refused.success and "teleop has authority" in refused.message
        authority.call({"op": "release", "source": "teleop"}, 5.0)
        operator.wait_state("moving")


def test_a_gate_opens_for_a_start_and_nothing_else() -> None:
    gate = StartGate("policy", "call start")
    gate.status("holding", "", 3)
    assert not gate.waits  # at first it may
    gate.status("holding", "", 4)
    assert "stopped and rearmed" in gate.waits  # the stop itself was too short to be heard
    gate.authority("", True)
    assert gate.waits
    assert gate.start() is None and not gate.waits
    gate.lost()
    gate.status("moving", "", 0)
    assert "lost" in gate.waits
    gate.episode()
    assert not gate.waits
    gate.authority("teleop", False)
    gate.authority("", False)  # taken from the person by a new episode or an e-stop
    assert "teleop took the arm over" in gate.waits
    gate.episode()
    assert gate.waits
    assert gate.start() is None and not gate.waits
    gate.authority("policy", False)
    assert not gate.waits
