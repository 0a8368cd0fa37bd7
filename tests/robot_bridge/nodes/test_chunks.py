"""Chunks in real time over a graph: the open chunk is executed while the policy thinks, and nothing is dropped for looking alike."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from tensordict import TensorDict
from trajectory_msgs.msg import JointTrajectory

from rl_core.contract import Channel, RobotContract
from rl_core.data.episode import Dataset, Episode
from rl_core.methods import make_learner, make_source
from rl_core.policy import ActionChunk, PolicyState, StatelessPolicy
from rl_core.strap import policy_instructions
from rl_core.strap.config import BCTransformerConfig
from robot_bridge.nodes.messages import MessageError
from robot_bridge.nodes.policy_node import PolicyNode
from robot_bridge.nodes.qos import LATCHED, advertise
from robot_bridge.nodes.spin import NodeError
from robot_bridge.nodes.stamps import to_ns
from robot_bridge.nodes.task_input import TaskInput, read_task
from sim_envs.arm.observation import world_contract
from tests.end_to_end.driver import arm_node, value
from tests.rl_core.strap.policy.told import Hashed
from tests.robot_bridge.nodes.test_policy_node import _reset, policy_node
from tests.ros_graph import Graph, spun

PERIOD_S = 0.05


def _contract(horizon: int, **changes: Any) -> RobotContract:
    contract = world_contract("lift", "joint_delta")
    return dataclasses.replace(contract, action=dataclasses.replace(contract.action, horizon=horizon), **changes)


class Standing(StatelessPolicy):
    """Asks the arm to stay where it is; an inference takes `seconds`."""

    def __init__(self, horizon: int = 5, seconds: float = 0.0) -> None:
        self.contract = _contract(horizon)
        self.horizon = horizon
        self.seconds = seconds
        self.seen: list[np.ndarray] = []

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        if bool(obs["joint_pos"].any()):  # not the warm-up
            self.seen.append(obs["joint_pos"][0].numpy().copy())
            time.sleep(self.seconds)
        values = torch.zeros(1, self.horizon, self.contract.action.size)
        return ActionChunk(values=values, period_s=PERIOD_S, execute=1), state


def _watch(graph: Graph, policy: Standing, commands_wanted: int) -> tuple[list[JointTrajectory], np.ndarray, dict[str, str]]:
    """Runs `policy`; gives its commands from the moment on the arm moves, the seconds between them, and the node's last figures."""
    commands = graph.collect(JointTrajectory, "arm/command")
    statuses = graph.collect(DiagnosticArray, "arm/status")
    diagnostics = graph.collect(DiagnosticArray, "diagnostics")
    with arm_node(horizon=10_000), policy_node(policy) as node:
        _reset(graph, 1)
        statuses.wait(lambda m: value(m, "state") == "moving")
        first = len(commands.messages) + 10
        commands.wait(after=first + commands_wanted, timeout_s=60)
        node.failure.raise_reported()
        after = len(diagnostics.messages)
        told = diagnostics.wait(lambda m: m.status[0].name == "policy latency", after=after)
        figures = {pair.key: pair.value for pair in told.status[0].values}
        # A busy machine may let a command be late, as the gaps below allow; nothing else stops the arm.
        assert {value(m, "reason") for m in statuses.messages[-3:]} <= {"", "no command in time"}
    return commands.messages[first:], np.diff(commands.arrivals[first:]), figures


def test_a_robot_that_stands_still_for_5_s_gets_inference_and_commands_all_the_time(graph: Graph) -> None:
    """An observation like the last one is an observation: no tolerance, no queue that runs empty, no first call on an empty history."""
    policy = Standing()
    commands, gaps, figures = _watch(graph, policy, 100)
    assert gaps.sum() > 4.5 and gaps.max() < 4 * PERIOD_S
    assert np.ptp(np.array(policy.seen)[-50:], axis=0).max() < 0.01  # it did stand still
    assert len(policy.seen) >= len(commands)  # asked every period, as its `execute` of 1 says
    assert len({to_ns(command.header.stamp) for command in commands}) == len(commands)  # every command from an observation of its own
    assert int(figures["stale_chunks"]) == 0


def test_while_a_slow_policy_thinks_the_open_chunk_goes_on_and_no_period_is_without_a_command(graph: Graph) -> None:
    """2.5 periods an inference, chunks of 8: half as many inferences as commands or less, and yet a command every period."""
    policy = Standing(horizon=8, seconds=2.5 * PERIOD_S)
    commands, gaps, figures = _watch(graph, policy, 60)
    assert np.median(gaps) == pytest.approx(PERIOD_S, abs=0.3 * PERIOD_S) and gaps.max() < 4 * PERIOD_S
    assert len(policy.seen) < 0.6 * len(commands)
    assert int(figures["late_chunks"]) > 10
    offsets = {round(-c.points[0].time_from_start.nanosec * 1e-9 - c.points[0].time_from_start.sec, 3) for c in commands}
    assert len(offsets) > 2  # a chunk takes over at the action that is due, and is executed from there


class Told(StatelessPolicy):
    """Turns the first joint one way or the other, as it is told."""

    instructions = ("turn left", "turn right")

    def __init__(self, default: str | None) -> None:
        self.contract = _contract(5, condition=() if default else (Channel(name="task", kind="text"),))
        self.default = default

    def prepare(self, condition: Any) -> TensorDict:
        said = condition.get("task", self.default)
        return TensorDict({"way": torch.tensor(float(self.instructions.index(said)) * 2 - 1)}, batch_size=[])

    def act(self, obs: TensorDict, condition: TensorDict, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
        values = torch.zeros(1, 5, self.contract.action.size)
        values[..., 0] = -0.1 * condition["way"]
        return ActionChunk(values=values, period_s=PERIOD_S, execute=1), state


def _way(message: JointState) -> float:
    return float(np.sign(message.position[0]))


def test_a_policy_does_what_task_says_and_stops_at_a_task_it_does_not_know(graph: Graph) -> None:
    actions = graph.collect(JointState, "policy/action")
    statuses = graph.collect(DiagnosticArray, "arm/status")
    diagnostics = graph.collect(DiagnosticArray, "diagnostics")
    tasks = advertise(graph.probe, String, "task", LATCHED)
    with arm_node(horizon=10_000), policy_node(Told(None)):
        _reset(graph, 1)
        waits = diagnostics.wait(lambda m: "task: nothing received" in m.status[0].message)
        assert "'turn left', 'turn right'" in waits.status[0].message and not actions.messages
        tasks.publish(String(data=json.dumps({"id": "7", "instruction": "turn left"})))
        assert _way(actions.wait()) == 1.0
        tasks.publish(String(data=json.dumps({"id": "8", "instruction": "turn right"})))
        actions.wait(lambda m: _way(m) == -1.0, after=len(actions.messages))
        tasks.publish(String(data=json.dumps({"id": "9", "instruction": "stand on your head"})))
        statuses.wait(lambda m: value(m, "state") == "holding", after=len(statuses.messages))
        waits = diagnostics.wait(lambda m: "refused" in m.status[0].message, after=len(diagnostics.messages))
        assert "'stand on your head'" in waits.status[0].message
        tasks.publish(String(data=json.dumps({"instruction": "turn left"})))
        actions.wait(lambda m: _way(m) == 1.0, after=len(actions.messages))


def test_a_trained_bundle_is_told_by_task_and_sees_a_history_of_its_own_period(graph: Graph, tmp_path: Path) -> None:
    """Two tasks with the same observations: joint 1 turns to where `task` says, without a sentence encoder in the node."""
    contract = world_contract("lift", "joint_delta").select(["joint_pos"])
    rng = np.random.default_rng(0)
    episodes = []
    for index, (said, first) in enumerate([("turn left", 0.3), ("turn right", -0.3)] * 2):
        actions = np.zeros((20, contract.action.size), np.float32)
        actions[:, 0] = first
        episodes.append(
            Episode(
                observations={"joint_pos": rng.normal(0, 1, (21, 7)).astype(np.float32)},
                actions=actions,
                rewards=np.zeros(20, np.float32),
                terminal=False,
                truncated=True,
                stamps_ns=np.arange(21, dtype=np.int64) * 50_000_000,
                uuid=str(index),
                meta={"lang": said},
            )
        )
    data = Dataset(contract=contract, episodes=tuple(episodes))
    config = BCTransformerConfig.preset("cpu").override(layers=1, modes=1, lr=3e-3, warm_up=10, batch_size=16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy_instructions, "sentence_encoder", Hashed)
        learner, source = make_learner("bc_transformer", config, data), make_source("bc_transformer", config, data)
    for _ in range(120):
        learner.update(source.next_batch())
    folder = learner.bundle().save(tmp_path / "bundle")
    actions_told = graph.collect(JointState, "policy/action")
    tasks = advertise(graph.probe, String, "task", LATCHED)
    node = PolicyNode(parameter_overrides=[Parameter("bundle", value=str(folder))])
    with arm_node(horizon=10_000), spun(node):
        _reset(graph, 1)
        for said, way in (("turn left", 1.0), ("turn right", -1.0)):
            tasks.publish(String(data=json.dumps({"instruction": said})))
            actions_told.wait(lambda m, way=way: way * m.position[0] > 0.15, after=len(actions_told.messages), timeout_s=20)
        node.failure.raise_reported()


def test_the_parameter_instruction_holds_until_a_task_comes_and_must_be_known(graph: Graph) -> None:
    actions = graph.collect(JointState, "policy/action")
    with arm_node(horizon=10_000), policy_node(Told("turn right"), instruction="turn left"):
        _reset(graph, 1)
        assert _way(actions.wait()) == 1.0
    failed = threading.Event()
    with arm_node(horizon=10_000), policy_node(Told("turn right"), instruction="turn") as node:
        deadline = time.monotonic() + 20
        with pytest.raises(NodeError, match="parameter instruction: 'turn', valid: .*'turn left', 'turn right'"):
            while time.monotonic() < deadline:
                node.failure.raise_reported()
                failed.wait(0.02)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("turn left", "not JSON"),
        ('["turn left"]', "list, valid: a JSON object"),
        ('{"instruction": "turn left", "bundle": "/tmp/x"}', r"fields \['bundle'\], valid: id, skill"),
        ('{"instruction": "turn left", "speed": 0.1}', "speed 0.1, valid: none; publish safety/speed_scale"),
        ('{"instruction": "turn left", "force": 3}', "force 3, valid: none"),
        ('{"instruction": "Turn left "}', "'Turn left ', valid: one the policy was trained with"),
        ('{"id": "7"}', "instruction None, valid"),
        ('{"instruction": ["turn left"]}', "valid: one the policy"),
    ],
)
def test_tasks_that_cannot_be_meant_are_refused(text: str, says: str) -> None:
    with pytest.raises(MessageError, match=says):
        read_task(text, Told.instructions)


def test_a_full_task_is_read_and_a_refused_one_ends_the_one_before() -> None:
    full = {"id": "1", "skill": "turn", "object": None, "target": None, "instruction": "turn left", "speed": None, "confirmed_by": "me"}
    assert read_task(json.dumps(full), Told.instructions) == "turn left"
    task = TaskInput(Told("turn right"))
    assert task.condition == {} and not task.missing
    task.receive(String(data=json.dumps(full)))
    assert task.condition == {"task": "turn left"} and not task.missing
    with pytest.raises(MessageError):
        task.receive(String(data="{}"))
    assert task.condition == {} and "refused" in task.missing
    assert not TaskInput(Standing()).instructions  # a policy that is not told anything
