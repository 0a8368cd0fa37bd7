"""A policy is held to its certificate: V by V, and over a real graph, where a hold lasts until an operator starts the policy again."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.logging import get_logger
from std_msgs.msg import String
from std_srvs.srv import Trigger
from tensordict import TensorDict

from rl_core.bundle import Bundle
from rl_core.contractive import Certificate
from rl_core.policy import ActionChunk, PolicyState
from robot_bridge.nodes.json_requests import JsonClient
from robot_bridge.nodes.policy_monitor import PolicyMonitor, carried_certificate
from robot_bridge.nodes.policy_node import PolicyNode
from sim_envs.arm.observation import world_contract
from tests.end_to_end.driver import arm_node, value
from tests.end_to_end.policies import RandomWalk
from tests.ros_graph import Graph, spun

PATIENCE = 20


def _certificate(**changes: Any) -> Certificate:
    one = np.ones((1, 1))
    values: dict[str, Any] = {
        "metric": one, "promised": 0.95, "factor": 0.9, "gain": 1.0, "stretch": np.ones(1), "k_theory": 10.0, "k_empirical": 2.0,
        "errors": np.zeros(1), "starts": one, "latents": one, "horizon": 50, "low": -np.ones(1), "high": np.ones(1),
        "bound_worst": 0.1, "bound_expected": 0.1,
    }  # fmt: skip
    return Certificate(**{**values, **changes})


class _Watched:
    """A monitor, and what it told."""

    def __init__(self, **changes: Any) -> None:
        self.told: list[dict[str, Any]] = []
        self.monitor = PolicyMonitor(
            _certificate(**changes), tell=lambda m: self.told.append(json.loads(m.data)), logger=get_logger("test")
        )

    def judge(self, v: float, step: float, state: float = 0.5) -> str:
        return self.monitor.judge({"certificate": torch.tensor([[v, step, state]], dtype=torch.float64)}, int(1e9 * step))


def test_a_decay_as_certified_is_ok_and_told() -> None:
    watched = _Watched()
    for step in range(40):
        assert watched.judge(0.81**step, step) == ""
    assert {row["verdict"] for row in watched.told} == {"ok"}
    assert watched.told[7] == {
        "stamp_ns": 7_000_000_000, "step": 7.0, "verdict": "ok", "reason": "", "v": pytest.approx(0.81**7), "bound": pytest.approx(0.81**7),
        "slow_periods": 0, "disturbances": 0, "margin": 0.5,
    }  # fmt: skip


def test_a_jump_of_v_is_a_disturbance_from_which_the_bound_begins_anew_and_no_hold() -> None:
    watched = _Watched()
    for step in range(60):
        v = 0.81**step if step < 10 else 0.7 * 0.81 ** (step - 10)
        assert watched.judge(v, step) == ""
    assert watched.told[9]["disturbances"] == 0 and watched.told[10]["verdict"] == "disturbed"
    assert watched.told[10]["bound"] == pytest.approx(0.7) and watched.told[12]["bound"] == pytest.approx(0.7 * 0.81**2)
    assert watched.told[-1]["disturbances"] == 1 and watched.told[-1]["verdict"] == "ok"


def test_a_push_that_lasts_some_periods_counts_once_and_the_next_one_again() -> None:
    watched = _Watched()
    v = 1.0
    for step in range(80):
        v = 0.5 if step == 50 else v * (1.3 if step in (10, 11, 13) else 0.81)
        assert watched.judge(v, step) == ""
    assert [row["disturbances"] for row in watched.told if row["verdict"] == "disturbed"] == [1, 1, 1, 2]


def test_v_must_fall_at_the_certified_rate_and_no_slower() -> None:
    keeping, slower = _Watched(), _Watched()
    assert not any(keeping.judge(0.81 ** (0.99 * step), step) for step in range(40))
    assert any(slower.judge(0.81 ** (0.8 * step), step) for step in range(40))


def test_a_decay_slower_than_certified_is_a_hold_after_some_periods_in_a_row() -> None:
    watched = _Watched()
    reasons = [watched.judge(0.97**step, step) for step in range(60)]
    first = next(index for index, reason in enumerate(reasons) if reason)
    assert PATIENCE <= first <= PATIENCE + 3 and all(reasons[first:])
    assert (
        "its certificate is violated: V is" in reasons[first] and f"above its bound, {watched.told[first]['bound']:.3g}" in reasons[first]
    )
    assert watched.told[first]["verdict"] == "hold" and watched.told[first]["slow_periods"] == PATIENCE
    assert watched.monitor.held and watched.monitor.figures()["verdict"] == "hold"


def test_a_v_that_jumps_again_and_again_is_no_disturbance_but_a_hold() -> None:
    watched = _Watched()
    reasons = [watched.judge((0.8, 0.5, 0.3)[step % 3], step) for step in range(90)]
    first = next(index for index, reason in enumerate(reasons) if reason)
    assert "V jumped in 20 of the last 60 periods" in reasons[first] and watched.told[first]["verdict"] == "hold"
    watched.monitor.resume()
    assert watched.judge(0.8, 100) == ""


def test_a_state_outside_of_the_certified_region_is_a_hold_at_once() -> None:
    watched = _Watched()
    assert watched.judge(1.0, 0) == ""
    reason = watched.judge(0.8, 1, state=1.25)
    assert "state 0 is 1.25, outside of the certified region -1..1" in reason
    assert watched.told[-1]["margin"] == pytest.approx(-0.25)


def test_a_v_that_is_not_finite_is_never_ok_and_is_told_as_null() -> None:
    watched = _Watched()
    watched.judge(1.0, 0)
    reasons = [watched.judge(float("nan"), step) for step in range(1, 40)]
    assert reasons[-1] and watched.told[1]["v"] is None and "ok" not in {row["verdict"] for row in watched.told[1:]}


def test_an_operators_start_ends_a_hold_and_an_episode_begins_at_no_disturbances() -> None:
    watched = _Watched()
    watched.judge(0.5, 0)
    watched.judge(0.9, 1)
    assert watched.judge(0.9, 2, state=2.0)
    watched.monitor.resume()
    assert not watched.monitor.held and watched.monitor.figures() == {}
    assert watched.judge(0.9, 3) == "" and watched.told[-1]["disturbances"] == 1 and watched.told[-1]["bound"] == pytest.approx(0.9)
    watched.monitor.reset()
    watched.judge(0.9, 0)
    assert watched.told[-1]["disturbances"] == 0


def test_a_policy_that_says_nothing_of_a_certificate_is_let_alone() -> None:
    watched = _Watched()
    assert watched.monitor.judge({"value": torch.zeros(1)}, 0) == ""
    assert watched.told == [] and watched.monitor.figures() == {} and not watched.monitor.held


def test_only_a_bundle_with_a_certificate_has_one() -> None:
    certificate = _certificate()
    empty = Bundle(kind="policy", method="bc", config={}, weights={})
    assert carried_certificate(empty) is None
    with_one = Bundle(kind="policy", method="contractive", config={}, weights={}, arrays=certificate.arrays())
    found = carried_certificate(with_one)
    assert found is not None and found.factor == certificate.factor and found.horizon == 50


class _Certified(RandomWalk):
    """Moves gently; its V falls as certified until `broken` is set, and then no more."""

    broken = False
    v = 1.0

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        chunk, after = super().act(obs, condition, state)
        if not self.broken:
            self.v *= 0.99
        figures = torch.tensor([[self.v, float(-50 * np.log(self.v)), 0.0]], dtype=torch.float64)
        if self.broken:
            figures[0, 2] = 3.0
        return ActionChunk(values=chunk.values, period_s=chunk.period_s, execute=1, info={"certificate": figures}), after


def test_after_a_violation_no_command_is_sent_until_an_operator_starts_the_policy_again(graph: Graph) -> None:
    statuses = graph.collect(DiagnosticArray, "arm/status")
    diagnostics = graph.collect(DiagnosticArray, "diagnostics")
    told = graph.collect(String, "policy/certificate")
    start = graph.probe.create_client(Trigger, "policy/start")
    policy = _Certified(world_contract("lift"), size=0.1)
    with arm_node(horizon=10_000), spun(PolicyNode(policy=policy, certificate=_certificate(factor=1.0))) as node:
        JsonClient(graph.probe, "episode").call({"op": "reset", "seed": 1}, 20.0)
        statuses.wait(lambda m: value(m, "state") == "moving")
        told.wait(lambda m: json.loads(m.data)["verdict"] == "ok")
        policy.broken = True
        statuses.wait(lambda m: value(m, "state") == "holding", after=len(statuses.messages))
        waits = diagnostics.wait(lambda m: "outside of the certified region" in m.status[0].message, after=len(diagnostics.messages))
        assert "policy/start" in waits.status[0].message
        figures = {pair.key: pair.value for pair in waits.status[1].values}
        assert waits.status[1].name == "policy certificate" and figures["verdict"] == "hold" and float(figures["margin"]) < 0
        begin = len(statuses.messages)
        statuses.wait(after=begin + 12)
        assert {value(m, "state") for m in statuses.messages[begin:]} == {"holding"}
        holds = sum(json.loads(m.data)["verdict"] == "hold" for m in told.messages)
        assert holds == 1  # it was not even asked again
        policy.broken = False
        assert start.wait_for_service(10.0)
        start.call_async(Trigger.Request())
        statuses.wait(lambda m: value(m, "state") == "moving", after=len(statuses.messages))
        node.failure.raise_reported()
