"""Cameras over a real graph."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import String

from rl_core.contract import Channel, RobotContract
from robot_bridge.control.limits import panda_limits
from robot_bridge.nodes.arm_offer import ArmOffer
from robot_bridge.nodes.camera_node import CameraNode
from robot_bridge.nodes.json_requests import JsonClient
from robot_bridge.nodes.messages import image_to_rgb, joint_state, pose, rgb_image
from robot_bridge.nodes.policy_inputs import PolicyInputs
from robot_bridge.nodes.qos import LATCHED, SENSOR, advertise
from robot_bridge.nodes.spin import SpinThread
from sim_envs.arm.observation import world_contract
from tests.end_to_end.driver import Driver, arm_node
from tests.ros_graph import Graph


class _SlowDrawing:
    """Takes 200 ms once in 30 pictures."""

    def __init__(self, task: str, width: int, height: int, camera: str) -> None:
        self._shape = height, width, 3
        self._count = 0

    def reset(self, seed: int) -> None:
        pass

    def render(self, positions: np.ndarray) -> np.ndarray:
        self._count += 1
        if self._count % 30 == 0:
            time.sleep(0.2)
        return np.full(self._shape, self._count % 256, np.uint8)


def test_a_camera_that_blocks_does_not_slow_the_control_loop_and_its_frame_is_marked_stale(graph: Graph) -> None:
    diagnostics = graph.collect(DiagnosticArray, "diagnostics")
    images = graph.collect(Image, "camera/front/image_raw", SENSOR)
    camera = CameraNode(make_drawing=_SlowDrawing, parameter_overrides=[Parameter("width", value=16), Parameter("height", value=16)])
    with SpinThread(camera, failure=camera.failure), arm_node():
        driver = Driver(graph)

        def stale(message: DiagnosticArray) -> bool:
            values = {pair.key: pair.value for pair in message.status[0].values}
            return message.status[0].name == "camera" and int(values["stale"]) >= 1 and int(values["published"]) >= 30

        diagnostics.wait(stale, timeout_s=20)
        stamps, _ = driver.track()
    camera.close()
    camera.destroy_node()
    assert len(images.messages) > 5
    gaps_s = np.diff(stamps) * 1e-9
    assert np.median(gaps_s) < 0.0105 and gaps_s.max() < 0.15  # no period as long as the camera was blocked


def _inputs(graph: Graph, *channels: Channel) -> tuple[Node, PolicyInputs]:
    contract = world_contract("lift")
    need = RobotContract(robot="panda", observation=channels, action=contract.action)
    told = {"tool_frame": "ee", "ik_model": "", "sim_mode": "realtime", "clock": "system", "control_period_s": 0.01}
    offer = ArmOffer(contracts=(contract,), limits=panda_limits(), **told)
    node = Node("policy")
    return node, PolicyInputs(node, need, offer)


def _publish_until(inputs: PolicyInputs, publish: Any) -> None:
    deadline = time.monotonic() + 10
    while inputs.missing() and time.monotonic() < deadline:
        publish()
        with inputs.changed:
            inputs.changed.wait(0.1)


def test_red_bgr8_of_a_camera_is_red_at_the_policy(graph: Graph) -> None:
    channel = Channel(name="front_image", kind="image", shape=(2, 3, 3), encoding="rgb8", row_order="top_down", max_age_s=5.0)
    node, inputs = _inputs(graph, channel)
    camera, joints, ee = (
        advertise(graph.probe, kind, topic, profile)
        for kind, topic, profile in (
            (Image, "camera/front/image_raw", SENSOR),
            (JointState, "joint_states", 10),
            (PoseStamped, "ee_pose", 10),
        )
    )
    names = panda_limits().names

    def publish() -> None:
        now = time.time_ns()
        red = rgb_image(np.zeros((2, 3, 3), np.uint8), frame="camera", stamp_ns=now)
        red.encoding, red.data = "bgr8", bytes([0, 0, 255]) * 6
        camera.publish(red)
        joints.publish(joint_state(names, np.zeros(8), np.zeros(8), now))
        ee.publish(pose(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), frame="base", stamp_ns=now))

    with SpinThread(node):
        _publish_until(inputs, publish)
        assert inputs.missing() == []
        seen = inputs.snapshot().observation["front_image"].numpy()
    assert seen.shape == (1, 2, 3, 3) and (seen == (255, 0, 0)).all()
    node.destroy_node()


def test_joint_order_of_joint_states_is_by_name_never_by_index(graph: Graph) -> None:
    names = panda_limits().names
    channels = [
        Channel(name="joint_pos", names=names[:7], unit="rad", max_age_s=5.0),
        Channel(name="gripper_pos", names=("gripper",), unit="m"),
    ]
    node, inputs = _inputs(graph, *channels)
    joints, ee = advertise(graph.probe, JointState, "joint_states"), advertise(graph.probe, PoseStamped, "ee_pose")
    values = np.arange(8.0)
    order = np.random.default_rng(0).permutation(8)

    def publish() -> None:
        now = time.time_ns()
        joints.publish(joint_state([names[i] for i in order], values[order], values[order], now))
        ee.publish(pose(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), frame="base", stamp_ns=now))

    with SpinThread(node):
        _publish_until(inputs, publish)
        observation = inputs.snapshot().observation
        missing = joint_state([names[i] for i in order[1:]], values[1:], values[1:], time.time_ns())
        joints.publish(missing)
        deadline = time.monotonic() + 5
        while not inputs.unusable and time.monotonic() < deadline:
            with inputs.changed:
                inputs.changed.wait(0.1)
    assert observation["joint_pos"].tolist() == [list(range(7))] and observation["gripper_pos"].item() == 7.0
    assert inputs.unusable == {"joint_states": 1}
    node.destroy_node()


def test_pictures_of_the_simulated_arm_arrive(graphics: None, graph: Graph) -> None:
    images = graph.collect(Image, "camera/front/image_raw", SENSOR)
    contracts = graph.collect(String, "camera/front/contract", LATCHED)
    with arm_node() as arm:
        graph.process("robot_bridge.nodes.camera_node", "--ros-args", "-p", "width:=64", "-p", "height:=48")
        message = images.wait(timeout_s=60)
        client = JsonClient(graph.probe, "episode")
        client.call({"op": "reset", "seed": 5}, 20.0)
        after = images.wait(lambda m: (image_to_rgb(m) != image_to_rgb(message)).any(), after=len(images.messages))
        arm.failure.raise_reported()
    pixels = image_to_rgb(after)
    assert pixels.shape == (48, 64, 3) and pixels.std() > 5
    channel = Channel(**json.loads(contracts.wait().data))
    assert channel.name == "front_image" and channel.shape == (48, 64, 3)
