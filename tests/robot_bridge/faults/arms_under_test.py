"""The arms whose fault tables are made here: what each needs to run, and the parameters of its node."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robot_bridge.control.clock import SystemClock
from robot_bridge.nodes.messages import joint_state, trajectory_arrays
from robot_bridge.nodes.qos import STREAM, advertise, subscribe
from robot_bridge.nodes.spin import SpinThread
from tests.robot_bridge.arms.servo_bench import Bench
from tests.robot_bridge.arms.simulators import franky_sim, trossen_sim
from tests.robot_bridge.control.rig import bench_limits

PLANAR = """<mujoco><compiler angle="radian"/><worldbody><body><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<joint name="shoulder" axis="0 0 1" range="-3 3"/><body pos="0.5 0 0"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
<joint name="elbow" axis="0 0 1" range="-3 3"/><site name="ee" pos="0.5 0 0"/></body></body></worldbody></mujoco>"""


@dataclass(frozen=True)
class Ready:
    """An arm that can be connected to: its driver's name, the parameters of its node, and the namespace it needs."""

    arm: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    namespace: str = ""


@contextmanager
def simulated(folder: Path) -> Iterator[Ready]:
    """The MuJoCo Panda in the arm node's own process."""
    yield Ready("simulated")


@contextmanager
def servo(folder: Path, model: str) -> Iterator[Ready]:
    """An emulated servo bus in this process."""
    bench = Bench(folder, model, clock=SystemClock())
    with bench.bus:
        yield Ready(bench.model.protocol, {"model": model, "port": bench.bus.port, "calibration": str(bench.file)})


@contextmanager
def franka(folder: Path) -> Iterator[Ready]:
    """franky-sim, at the speed of launch/config/arm.yaml: on a busy machine it lags behind a clock."""
    with franky_sim() as host:
        yield Ready("franka", {"host": host, "speed": 0.25})


@contextmanager
def trossen(folder: Path) -> Iterator[Ready]:
    """trossen-arm-sim."""
    with trossen_sim() as host:
        yield Ready("trossen", {"host": host})


@contextmanager
def ros2_control(folder: Path) -> Iterator[Ready]:
    """A node of this process in place of a joint_trajectory_controller and its joint state broadcaster; follows at once."""
    limits, lock = bench_limits(), threading.Lock()
    (folder / "limits.json").write_text(limits.to_json())
    (folder / "planar.xml").write_text(PLANAR)
    positions = dict(zip(limits.names, (0.1, 0.1, 0.04), strict=True))
    node = Node("controller")
    states = advertise(node, JointState, "/joint_states", STREAM)

    def follow(message: JointTrajectory) -> None:
        names, rows, _ = trajectory_arrays(message)
        with lock:
            positions.update(zip(names, rows[0].tolist(), strict=True))

    def tell() -> None:
        with lock:
            values = np.array(list(positions.values()))
        states.publish(joint_state(list(positions), values, np.zeros(len(values)), time.time_ns()))

    subscribe(node, JointTrajectory, "/joint_trajectory_controller/joint_trajectory", follow, STREAM)
    node.create_timer(0.01, tell)
    with SpinThread(node):
        yield Ready("ros2_control", {"limits": folder / "limits.json", "kinematics": folder / "planar.xml"}, "policy_arm")
    node.destroy_node()
