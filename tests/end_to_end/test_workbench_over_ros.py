"""The workbench is a task of the simulated arm: what is on it is published, what slides too."""

from __future__ import annotations

import json

import numpy as np
from geometry_msgs.msg import PoseStamped
from std_msgs.msg import String

from robot_bridge.nodes.qos import LATCHED
from sim_envs.arm.world import ArmWorld
from tests.end_to_end.driver import arm_node
from tests.ros_graph import Graph


def test_the_simulated_arm_takes_a_task_of_the_workbench(graph: Graph) -> None:
    world = ArmWorld("can_left")
    world.reset(7)
    contract = graph.collect(String, "arm/contract", LATCHED)
    poses = {name: graph.collect(PoseStamped, f"objects/{name}/pose") for name in ("can", "left_tray", "drawer", "button")}
    with arm_node(task="can_left", episodes="forever", seed=7):
        offered = json.loads(contract.wait(timeout_s=30).data)["contracts"][0]
        assert {"can_pos", "left_tray_pos", "gripper_to_drawer_pos"} <= {channel["name"] for channel in offered["observation"]}
        for name, collected in poses.items():
            expected = world.state().objects[name][0]
            collected.wait(lambda m, expected=expected: np.allclose(_position(m), expected, atol=2e-3), timeout_s=20)


def _position(message: PoseStamped) -> np.ndarray:
    point = message.pose.position
    return np.array([point.x, point.y, point.z])
