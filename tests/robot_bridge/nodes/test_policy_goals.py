"""Goals told to a policy that infers its skill from the states in its bundle, over a real graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from tensordict import TensorDict

from rl_core.bundle import Bundle
from rl_core.methods import load_policy
from robot_bridge.control.explored_box import kept_inside
from robot_bridge.nodes.messages import pose
from robot_bridge.nodes.policy_node import PolicyNode
from robot_bridge.nodes.qos import STREAM, advertise
from robot_bridge.nodes.spin import NodeError
from tests.end_to_end.bundles import dvfb_bundle, seen_places
from tests.end_to_end.driver import arm_node, value
from tests.end_to_end.policies import RecordingPolicy
from tests.ros_graph import Collected, Graph, spun

UNTURNED = np.array([0.0, 0.0, 0.0, 1.0])


class _Told(RecordingPolicy):
    """Keeps the skills it acts with."""

    def __init__(self, folder: Path) -> None:
        bundle = Bundle.load(folder)
        policy = kept_inside(load_policy(bundle), bundle)
        super().__init__(policy)
        self.skills: list[torch.Tensor] = []
        self.prepare = self._kept

    def _kept(self, condition: Mapping[str, Any]) -> TensorDict:
        prepared = self._policy.prepare(condition)
        self.skills.append(prepared["skill"])
        return prepared


def _waits(diagnostics: Collected, text: str) -> str:
    """What the policy node says it waits for, once that holds `text`."""

    def said(message: DiagnosticArray) -> bool:
        status = message.status[0]
        return bool(status.name == "policy latency" and text in value(message, "waits"))

    return value(diagnostics.wait(said, after=len(diagnostics.messages) - 1), "waits")


def test_goals_it_cannot_go_to_are_refused_by_name_and_it_goes_to_the_next(graph: Graph, tmp_path: Path) -> None:
    places = seen_places(dvfb_bundle(tmp_path / "bundle"))
    policy = _Told(tmp_path / "bundle")
    diagnostics, statuses = graph.collect(DiagnosticArray, "diagnostics"), graph.collect(DiagnosticArray, "arm/status")
    goals = advertise(graph.probe, PoseStamped, "goal_pose", STREAM)

    def told(position: Any, frame: str = "base") -> None:
        goals.publish(pose(np.asarray(position), UNTURNED, frame=frame, stamp_ns=0))

    with arm_node(horizon=10_000, episodes="forever", task="reach"), spun(PolicyNode(policy=policy)) as node:
        _waits(diagnostics, "goal_pose: nothing received; publish a PoseStamped in frame 'base'")
        assert {value(message, "authority") for message in statuses.messages} == {""}
        for position, frame, why in (
            ([0.8, 0.5, 0.8], "base", "goal of eef_pos: [0.8"),
            ([np.nan, 0.0, 0.3], "base", "valid: finite metres"),
            (places[0], "camera", "frame 'camera', valid: 'base'"),
            ([0.5, 0.0, 2.0], "base", "inside the arm's workspace"),
        ):
            told(position, frame)
            said = _waits(diagnostics, why)
            assert said.startswith("the last goal was refused: goal_pose: ")
        assert not policy.actions and node._worker is not None
        told(places[10])
        statuses.wait(lambda message: value(message, "state") == "moving", after=len(statuses.messages))
        told([0.8, 0.5, 0.8])  # on the way: the arm holds, the goal before is over
        _waits(diagnostics, "from the nearest carried state")
        statuses.wait(lambda message: value(message, "state") == "holding", after=len(statuses.messages) - 1)
        told(places[200])
        statuses.wait(lambda message: value(message, "state") == "moving", after=len(statuses.messages))
        node.failure.raise_reported()
    expected = [policy._policy.prepare({"goal_eef_pos": places[i]})["skill"] for i in (10, 200)]
    assert not torch.allclose(*expected)
    assert len(policy.skills) == 3  # the first one is that of the warm-up
    for skill, other in zip(policy.skills[1:], expected, strict=True):
        torch.testing.assert_close(skill, other)


def test_a_bundle_that_is_told_skills_ends_with_how_it_is_told_goals(graph: Graph, tmp_path: Path) -> None:
    policy = load_policy(Bundle.load(dvfb_bundle(tmp_path / "bundle", goals=False)))
    statuses = graph.collect(DiagnosticArray, "arm/status")
    with arm_node(task="reach"), spun(PolicyNode(policy=policy)) as node:

        def goes_on(message: DiagnosticArray) -> bool:
            node.failure.raise_reported()
            return False

        with pytest.raises(NodeError, match="condition.skill: needed.*\n.*armstack solve BUNDLE --goal-channel eef_pos"):
            statuses.wait(goes_on)
