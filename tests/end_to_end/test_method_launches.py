"""PEAR's and DVFB's launch files, as a user starts them."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import numpy as np
from geometry_msgs.msg import PoseStamped
from std_msgs.msg import String

from rl_core.dvfb.solving import make_goal_policy
from robot_bridge.launch_file import read_launch_file
from robot_bridge.launch_places import find_launch_file
from robot_bridge.nodes.messages import pose, pose_arrays
from robot_bridge.nodes.qos import EVENTS, STREAM, advertise
from tests.end_to_end.bundles import dvfb_bundle, pear_bundle, seen_places
from tests.ros_graph import Graph


def test_pear_pick_plays_episodes_and_tells_subgoals_and_goals(graph: Graph, tmp_path: Path) -> None:
    bundle = pear_bundle(tmp_path / "bundle")
    told, episodes = graph.collect(PoseStamped, "policy/subgoal"), graph.collect(String, "episode", EVENTS)
    wanted = graph.collect(PoseStamped, "objects/goal_eef/pose")
    process = graph.process("robot_bridge.cli", "launch", "pear_pick", f"bundle:={bundle}", "sim_mode:=lockstep", "horizon:=20")
    episodes.wait(lambda message: json.loads(message.data)["phase"] == "over", timeout_s=120)
    assert {json.loads(message.data)["task"] for message in episodes.messages} == {"goal_pick"}
    position, _ = pose_arrays(told.wait())
    assert (np.abs(position - [0.5, 0.0, 0.1]) < [0.2, 0.35, 0.4]).all()  # the goal worlds' box
    assert wanted.messages[-1].header.frame_id == "base"
    assert process.end(signal.SIGINT, timeout_s=30) == 0


def test_dvfb_goals_goes_to_a_goal_that_is_published(graph: Graph, tmp_path: Path) -> None:
    """The bundle is the one that `armstack solve --goal-channel` makes."""
    dvfb_bundle(tmp_path / "pretrained", goals=False)
    bundle = make_goal_policy(tmp_path / "pretrained", tmp_path / "goals", "eef_pos")
    hands, goals = graph.collect(PoseStamped, "ee_pose"), advertise(graph.probe, PoseStamped, "goal_pose", STREAM)
    process = graph.process("robot_bridge.cli", "launch", "dvfb_goals", f"bundle:={bundle}")
    process.wait_line("nothing received; publish a PoseStamped in frame 'base'", 120.0)
    start, _ = pose_arrays(hands.wait(timeout_s=30))
    deadline = time.monotonic() + 30.0
    while not goals.get_subscription_count():  # before the policy node is known here a goal would be lost
        assert time.monotonic() < deadline
        time.sleep(0.02)
    goals.publish(pose(seen_places(bundle)[50], np.array([0.0, 0.0, 0.0, 1.0]), frame="base", stamp_ns=0))
    process.wait_line("goal_eef_pos [", 30.0)
    hands.wait(lambda message: bool(np.linalg.norm(pose_arrays(message)[0] - start) > 0.02), timeout_s=30)
    assert process.end(signal.SIGINT, timeout_s=30) == 0


def test_what_a_user_may_leave_out_has_a_default() -> None:
    for name, task in (("pear_pick", "goal_pick"), ("dvfb_goals", "reach")):
        arm, policy = read_launch_file(find_launch_file(name), {"bundle": "b"})
        assert f'task:="{task}"' in " ".join(arm.command) and 'bundle:="b"' in " ".join(policy.command)
