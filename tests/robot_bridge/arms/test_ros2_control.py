"""The ros2_control driver over a real ROS graph, with a small node in place of controller and joint state broadcaster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from rl_core.errors import ArmstackError
from robot_bridge.arms.base import Arm, ArmLost
from robot_bridge.arms.ros2_control import Ros2ControlArm
from robot_bridge.nodes.arm_node import ArmNode
from robot_bridge.nodes.messages import trajectory_arrays
from robot_bridge.nodes.qos import STREAM, advertise, subscribe
from robot_bridge.nodes.spin import NodeError, SpinThread
from robot_bridge.nodes.stamps import to_time
from tests.robot_bridge.arms.following import assert_inside_limits, following, wait
from tests.robot_bridge.control.rig import bench_limits
from tests.ros_graph import Graph, graph, ros

__all__ = ["graph", "ros"]

CONTROLLER = "/arm_controller"
PLANAR = """<mujoco><compiler angle="radian"/><worldbody><body><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<joint name="shoulder" axis="0 0 1" range="-3 3"/><body pos="0.4 0 0"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<joint name="elbow" axis="0 0 1" range="-3 3"/><site name="ee" pos="0.3 0 0"/></body></body></worldbody></mujoco>"""


class Controller:
    """Follows at once; publishes joint states in alphabetical order, with a joint of somebody else between them."""

    def __init__(self, names: tuple[str, ...], interface: str, order: tuple[str, ...]) -> None:
        self.node = Node("controller")
        self.order = order
        self.positions = dict.fromkeys(names, 0.0)
        self.received: list[dict[str, float]] = []
        self.period_s: list[float] = []
        self.states = advertise(self.node, JointState, "/joint_states", STREAM)
        self.silent = self.nameless = False
        if interface == "trajectory":
            subscribe(self.node, JointTrajectory, f"{CONTROLLER}/joint_trajectory", self._trajectory, STREAM)
        else:
            subscribe(self.node, Float64MultiArray, f"{CONTROLLER}/commands", self._forward, STREAM)
        self.stamp_ns = 5_000_000_000
        self.node.create_timer(0.01, self._publish)

    def _trajectory(self, message: JointTrajectory) -> None:
        names, positions, times = trajectory_arrays(message)
        assert message.header.stamp.sec == message.header.stamp.nanosec == 0
        self.period_s.append(float(times[0]))
        self._follow(dict(zip(names, positions[0].tolist(), strict=True)))

    def _forward(self, message: Float64MultiArray) -> None:
        self._follow(dict(zip(self.order, message.data, strict=True)))

    def _follow(self, target: dict[str, float]) -> None:
        self.received.append(target)
        self.positions |= target

    def _publish(self) -> None:
        if self.silent:
            return
        self.stamp_ns += 10_000_000
        named = {**self.positions, "joint_of_somebody_else": 9.0}
        names = sorted(named)
        if self.nameless:
            names.remove("elbow")
        message = JointState(name=names, position=[named[n] for n in names], velocity=[0.0] * len(names))
        message.header.stamp = to_time(self.stamp_ns)
        self.states.publish(message)


@pytest.fixture
def limits(tmp_path: Path) -> Path:
    path = tmp_path / "limits.json"
    path.write_text(bench_limits().to_json())
    return path


@pytest.fixture(params=["trajectory", "forward"])
def rig(request: pytest.FixtureRequest, limits: Path, ros: int) -> Iterator[tuple[Controller, Ros2ControlArm]]:
    names = bench_limits().names
    order = names[::-1]
    controller = Controller(names, request.param, order)
    with SpinThread(controller.node):
        arm = Ros2ControlArm(
            limits=str(limits),
            controller=CONTROLLER,
            interface=request.param,
            controller_joints=order if request.param == "forward" else (),
        )
        yield controller, arm
        arm.close()
    controller.node.destroy_node()


def _connected(arm: Any) -> Any:
    """Connects; discovery may take a moment."""

    def tried() -> bool:
        try:
            arm.connect()
            return True
        except ArmLost:
            return False

    wait(tried, "the connection", 20.0)
    return arm


def test_joints_are_matched_by_name_in_any_order_and_stamps_are_the_messages(rig: tuple[Controller, Ros2ControlArm]) -> None:
    controller, arm = rig
    names = arm.joint_names
    controller.positions = {name: 0.01 * (i + 1) for i, name in enumerate(names)}
    assert isinstance(_connected(arm), Arm)
    wait(lambda: arm.read().positions.tolist() == [0.01, 0.02, 0.03], "the state")
    state = arm.read()
    assert state.names == names and state.stamp_ns % 10_000_000 == 0 and state.stamp_ns > 5_000_000_000
    arm.command(np.array([0.11, 0.12, 0.05]), 0.01)
    wait(lambda: controller.received, "the command")
    assert controller.received[-1] == dict(zip(names, [0.11, 0.12, 0.05], strict=True))
    assert controller.period_s in ([], [0.01])


def test_a_sine_is_followed_inside_all_limits_and_a_stop_holds_the_measured_pose(rig: tuple[Controller, Ros2ControlArm]) -> None:
    controller, arm = rig
    controller.positions = dict(zip(arm.joint_names, (0.0, 0.0, 0.04), strict=True))
    arm.description = PLANAR  # type: ignore[attr-defined]
    _connected(arm)
    with following(arm) as run:
        run.swing(0.1, 2.0, 0.6)
        assert run.refusals == []
        wait(lambda: abs(controller.positions[arm.joint_names[0]]) > 0.02, "motion")
        run.loop.e_stop(True, "button")
        wait(lambda: run.loop.status().state == "stopped", "the stop")
        run.periods += run.loop.drain()
        assert_inside_limits(run.periods, arm.limits)


def test_another_publisher_on_the_controllers_topic_is_a_lost_arm(rig: tuple[Controller, Ros2ControlArm], ros: int) -> None:
    controller, arm = rig
    _connected(arm)
    kind = Float64MultiArray if arm._forward else JointTrajectory
    publisher = advertise(controller.node, kind, arm._command_topic, STREAM)
    wait(lambda: _lost(arm, "other publisher"), "the refusal")
    controller.node.destroy_publisher(publisher)
    _connected(arm)


def test_silence_and_a_missing_joint_are_a_lost_arm(rig: tuple[Controller, Ros2ControlArm]) -> None:
    controller, arm = rig
    _connected(arm)
    controller.nameless = True
    wait(lambda: _lost(arm, "elbow.* missing"), "the refusal")
    controller.nameless = False
    wait(lambda: not _lost(arm, "."), "the state")
    controller.silent = True
    wait(lambda: _lost(arm, "no joint states on /joint_states"), "the refusal")


def _lost(arm: Ros2ControlArm, says: str) -> bool:
    try:
        arm.read()
        return False
    except ArmLost as error:
        return re.search(says, str(error)) is not None


def test_without_a_controller_it_says_what_to_start(limits: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robot_bridge.arms.ros2_control._FIRST_S", 0.1)
    arm = Ros2ControlArm(limits=str(limits))
    with pytest.raises(ArmLost, match="is the controller loaded"):
        arm.connect()
    with pytest.raises(ArmLost, match="joint state broadcaster"):
        arm.read()
    arm.close()
    with pytest.raises(ArmLost, match="not connected"):
        arm.command(np.zeros(3), 0.01)


@pytest.mark.parametrize(
    ("parameters", "says"), [({}, "MJCF file of the arm with a site `ee`"), ({"kinematics": "planar.xml"}, "start it in a namespace")]
)
def test_the_arm_node_needs_kinematics_and_a_namespace(
    ros: int, limits: Path, monkeypatch: pytest.MonkeyPatch, parameters: dict[str, str], says: str
) -> None:
    monkeypatch.chdir(limits.parent)
    Path("planar.xml").write_text(PLANAR)
    values = {"arm": "ros2_control", "limits": str(limits), **parameters}
    with pytest.raises(NodeError, match=says):
        ArmNode(parameter_overrides=[Parameter(name, value=value) for name, value in values.items()])


def test_settings_that_cannot_be_meant_are_refused(limits: Path, tmp_path: Path) -> None:
    with pytest.raises(ArmstackError, match="valid: trajectory, forward"):
        Ros2ControlArm(limits=str(limits), interface="velocity")  # type: ignore[arg-type]
    with pytest.raises(ArmstackError, match="unknown name"):
        Ros2ControlArm(limits=str(limits), controller_joints=("shoulder", "elbow", "gripper", "wrist"))
    with pytest.raises(ArmstackError, match="valid: a JSON file"):
        Ros2ControlArm(limits=str(tmp_path / "none.json"))
