"""The WidowX AI driver against the vendor protocol's simulator (make sims), through the control loop and the command filter."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robot_bridge.arms.base import Arm, ArmLost
from robot_bridge.arms.trossen import TrossenArm
from robot_bridge.control.kinematics import Kinematics
from robot_bridge.nodes.json_requests import JsonClient
from robot_bridge.nodes.messages import trajectory
from robot_bridge.nodes.qos import STREAM, advertise
from robot_bridge.nodes.stamps import to_ns
from tests.robot_bridge.arms.following import assert_inside_limits, following, wait, wait_for_rest
from tests.robot_bridge.arms.killing import kill_moving_arm_node, stated_s
from tests.robot_bridge.arms.simulators import trossen_sim
from tests.robot_bridge.command_line import Cli
from tests.ros_graph import Graph, graph, ros

__all__ = ["graph", "ros"]

pytest.importorskip("trossen_arm", reason="pip install 'armstack[trossen]'")


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Address, and where the simulator writes what its joints do."""
    log = tmp_path_factory.mktemp("trossen") / "joints"
    with trossen_sim(log) as host:
        yield host, log


@pytest.fixture(scope="module")
def host(simulation: tuple[str, Path]) -> str:
    return simulation[0]


@pytest.fixture
def arm(host: str) -> Iterator[TrossenArm]:
    arm = TrossenArm(host=host)
    yield arm
    arm.close()


def test_it_reads_joints_and_an_end_effector_that_fits_its_kinematics(arm: TrossenArm) -> None:
    assert isinstance(arm, Arm)
    arm.connect()
    state = arm.read()
    assert state.names == arm.limits.names == arm.joint_names
    position, quaternion = Kinematics(arm.description).fk(state.positions[:6])
    assert state.ee_pos == pytest.approx(position, abs=1e-3)
    assert abs(float(state.ee_quat @ quaternion)) == pytest.approx(1.0, abs=1e-4)


def test_a_sine_is_followed_inside_all_limits_at_every_sample_and_an_e_stop_ends_it(arm: TrossenArm) -> None:
    with following(arm) as run:
        run.swing(0.1, 2.0, 1.2)
        assert run.refusals == []
        wait(lambda: abs(arm.read().positions[0] - run.begin[0]) > 0.02, "motion")
        run.loop.e_stop(True, "button")
        wait(lambda: run.loop.status().state == "stopped", "the stop")
        rest = wait_for_rest(arm.read)
        run.periods += run.loop.drain()
        assert_inside_limits(run.periods, arm.limits)
        sent = np.array([period.output.positions for period in run.periods])
        assert np.ptp(sent[:, 0]) > 0.1 and np.ptp(sent[:, 1:6], axis=0).max() < 0.01  # where it was measured at the start and at rest
        assert np.ptp(sent[-20:], axis=0).max() == 0.0
        assert rest[0] == pytest.approx(sent[-1][0], abs=0.01)


def test_after_kill_9_of_the_arm_node_motion_ends_within_the_time_that_the_safety_report_states(
    simulation: tuple[str, Path], graph: Graph, cli: Cli
) -> None:
    """Read from the simulator's side: the controller has no watchdog and goes on to its last target, one period away."""
    host, log = simulation
    moved_s = kill_moving_arm_node(graph, log, "arm:=trossen", f"host:={host}")
    assert moved_s <= stated_s(cli, "trossen") < 0.25


def test_a_call_without_a_connection_is_a_lost_arm(arm: TrossenArm) -> None:
    with pytest.raises(ArmLost, match="not connected"):
        arm.read()
    with pytest.raises(ArmLost, match="not connected"):
        arm.command(np.zeros(7), 0.01)


def test_an_arm_that_is_not_there_is_a_lost_arm_with_what_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robot_bridge.arms.trossen._CONNECT_S", 0.2)
    with pytest.raises(ArmLost, match="powered"):
        TrossenArm(host="127.0.0.1").connect()


def test_a_controller_set_tighter_than_the_filter_is_refused(arm: TrossenArm) -> None:
    arm.limits = dataclasses.replace(arm.limits, velocity=(9.0,) * 7)
    with pytest.raises(ArmLost, match="joint_0 is set to -3.05.* at most 3.14/s"):
        arm.connect()


def test_the_arm_node_drives_it_over_ros_and_leaves_it_at_rest(host: str, graph: Graph) -> None:
    states = graph.collect(JointState, "joint_states")
    applied = graph.collect(JointTrajectory, "arm/applied")
    commands = advertise(graph.probe, JointTrajectory, "arm/command", STREAM)
    process = graph.process("robot_bridge.nodes", "arm_node", "--ros-args", "-p", "arm:=trossen", "-p", f"host:={host}", "-p", "speed:=0.5")
    process.wait_line("trossen ready", 60.0)
    first = states.wait(timeout_s=20.0)
    JsonClient(graph.probe, "arm/authority").call({"op": "take", "source": "policy"}, 20.0)
    names, begin = list(first.name), np.array(first.position)
    target = begin + np.array([0.1, 0, 0, 0, 0, 0, 0])
    for _ in range(16):
        stamp_ns = to_ns(states.messages[-1].header.stamp)
        commands.publish(trajectory(names[::-1], target[::-1][None], np.array([0.1]), stamp_ns=stamp_ns, source="policy"))
        time.sleep(0.05)
    states.wait(lambda message: message.position[0] - begin[0] > 0.05)
    sent = np.array([message.points[0].positions for message in applied.messages])
    assert np.abs(np.diff(sent[:, 0])).max() <= 0.5 * 3.14 * 0.01 + 1e-9
    assert process.end() == 0
    arm = TrossenArm(host=host)
    arm.connect()
    wait_for_rest(arm.read)
    arm.close()


def test_recovery_clears_the_controllers_error_and_the_driver_connects_anew(arm: TrossenArm) -> None:
    arm.connect()
    arm.recover()
    with pytest.raises(ArmLost, match="not connected"):
        arm.read()
    arm.connect()
    assert arm.read().positions.shape == (7,)
