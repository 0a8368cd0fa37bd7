"""What is told on `policy/subgoal`, and when a hierarchy's clock stands still."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped

from rl_core.contract import Channel
from rl_core.methods import load_policy
from robot_bridge.control.hand_policy import fitted
from robot_bridge.nodes.messages import diagnostic, pose_arrays
from robot_bridge.nodes.policy_node import PolicyNode
from robot_bridge.nodes.policy_subgoal import TOPIC, hand_columns
from robot_bridge.nodes.qos import advertise
from robot_bridge.nodes.stamps import to_ns
from sim_envs.arm.observation import world_contract
from tests.end_to_end.bundles import pear_bundle
from tests.end_to_end.driver import arm_node, value
from tests.end_to_end.policies import RandomWalk, RecordingPolicy
from tests.ros_graph import Graph, spun


@pytest.mark.parametrize(
    ("names", "changes", "columns"),
    [
        (("x", "y", "z"), {}, [0, 1, 2]),
        (("block_x", "block_y", "block_z", "eef_x", "eef_y", "eef_z"), {}, [3, 4, 5]),
        (("x", "y", "z"), {"frame": "maze"}, []),
        (("x", "y", "z"), {"unit": "rad"}, []),
        (("x", "y"), {}, []),
        (("block_x", "block_y", "block_z"), {}, []),
    ],
)
def test_the_hands_position_is_found_by_name(names: tuple[str, ...], changes: dict[str, str], columns: list[int]) -> None:
    channel = Channel(**{"name": "desired_goal", "names": names, "unit": "m", "frame": "base", **changes})
    assert hand_columns(channel) == columns
    assert hand_columns(None) == []


def test_a_policy_without_subgoals_has_no_topic(graph: Graph) -> None:
    statuses = graph.collect(DiagnosticArray, "arm/status")
    with arm_node(episodes="forever"), spun(PolicyNode(policy=RandomWalk(world_contract("lift"), size=0.1))):
        statuses.wait(lambda message: value(message, "state") == "moving")
        assert graph.probe.count_publishers(TOPIC) == 0


def test_a_held_arm_stops_the_subgoals_clock_and_motion_goes_on_from_a_fresh_observation(graph: Graph, tmp_path: Path) -> None:
    policy = RecordingPolicy(fitted(load_policy(pear_bundle(tmp_path / "bundle")), (world_contract("goal_pick"),)))
    statuses, told = graph.collect(DiagnosticArray, "arm/status"), graph.collect(PoseStamped, TOPIC)
    guard = advertise(graph.probe, DiagnosticArray, "safety/holds")

    def say(level: bytes, state: str) -> None:
        guard.publish(DiagnosticArray(status=[diagnostic("guard", {}, level=level, message="a person is near")]))
        statuses.wait(lambda message: value(message, "state") == state, after=len(statuses.messages))

    with arm_node(horizon=10_000, episodes="forever", task="goal_pick"), spun(PolicyNode(policy=policy)) as node:
        told.wait(after=10, timeout_s=20)
        say(DiagnosticStatus.ERROR, "holding")
        statuses.wait(after=len(statuses.messages) + 3)
        held, heard, held_ns = len(policy.info), len(told.messages), to_ns(statuses.messages[-1].header.stamp)
        statuses.wait(after=len(statuses.messages) + 10)
        assert len(policy.info) == held and len(told.messages) == heard  # a second: ten decisions of the lower level
        say(DiagnosticStatus.OK, "moving")
        told.wait(after=heard + 5)
        node.failure.raise_reported()
    ages = [int(info["age"][0]) for info in policy.info]
    assert len(ages) > held + 5
    assert all(
        (after - before) % 7 <= 1 for before, after in zip(ages, ages[1:], strict=False)
    )  # an answer nobody waited for is asked again
    fresh = told.messages[heard]
    assert to_ns(fresh.header.stamp) > held_ns and fresh.header.frame_id == "base"
    assert np.isfinite(pose_arrays(fresh)[0]).all()
