"""A sender of commands and an arm node for tests of what the arm does about them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from numpy.typing import NDArray
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from robot_bridge.nodes.arm_node import ArmNode
from robot_bridge.nodes.json_requests import JsonClient
from robot_bridge.nodes.messages import by_name, trajectory
from robot_bridge.nodes.qos import STREAM, advertise
from robot_bridge.nodes.simulated_world import WorldArm
from robot_bridge.nodes.stamps import to_ns
from tests.ros_graph import Graph, spun

JOINT = "panda_joint1"
CONTROL_S = 0.01


@contextmanager
def arm_node(make_arm: Any = WorldArm, namespace: str = "", **parameters: Any) -> Iterator[ArmNode]:
    """A simulated arm in real time, in this process."""
    values = {"episodes": "on_request", **parameters}
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    arm = ArmNode(make_arm=make_arm, parameter_overrides=overrides, namespace=namespace)
    with spun(arm):
        yield arm


class Driver:
    """Swings one joint by commands at 20 Hz, and hears what the arm node says."""

    def __init__(self, graph: Graph, namespace: str = "") -> None:
        self.source = "policy"
        self.states = graph.collect(JointState, f"{namespace}joint_states")
        self.applied = graph.collect(JointTrajectory, f"{namespace}arm/applied")
        self.statuses = graph.collect(DiagnosticArray, f"{namespace}arm/status")
        self.commands = advertise(graph.probe, JointTrajectory, f"{namespace}arm/command", STREAM)
        self._authority = JsonClient(graph.probe, f"{namespace}arm/authority")
        self._rearm = graph.probe.create_client(Trigger, f"{namespace}arm/rearm")
        self._streaming = threading.Event()
        self._thread: threading.Thread | None = None
        self.states.wait(timeout_s=20)

    def take(self) -> None:
        """Takes authority; bound to whoever commands first under this source."""
        self._authority.call({"op": "take", "source": self.source}, 10.0)

    def send(self, offset: float, *, stamp_shift_s: float = 0.0, reverse: bool = False, gripper: float = 0.08) -> None:
        """Commands the joint to where it was at the start plus `offset` rad, the others to where they were."""
        first, last = self.states.messages[0], self.states.messages[-1]
        target = np.array(first.position)
        names = list(first.name)
        target[names.index(JOINT)] += offset
        target[names.index("gripper")] = gripper
        order = slice(None, None, -1) if reverse else slice(None)
        stamp_ns = to_ns(last.header.stamp) + int(stamp_shift_s * 1e9)
        self.commands.publish(trajectory(names[order], target[order][None], np.array([0.1]), stamp_ns=stamp_ns, source=self.source))

    def start(self) -> None:
        """Streams a swing of 0.3 rad with a period of 4 s until `stop`."""
        self._streaming.set()

        def stream() -> None:
            begin = time.monotonic()
            while self._streaming.is_set():
                elapsed = time.monotonic() - begin
                self.send(0.3 * np.sin(np.pi / 2 * elapsed), gripper=0.08 if int(elapsed * 2) % 2 else 0.06)
                time.sleep(0.05)

        self._thread = threading.Thread(target=stream, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the stream."""
        self._streaming.clear()
        if self._thread is not None:
            self._thread.join()

    def rearm(self) -> tuple[bool, str]:
        """Calls `arm/rearm`."""
        assert self._rearm.wait_for_service(10.0)
        future = self._rearm.call_async(Trigger.Request())
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        assert done.wait(10.0)
        response = future.result()
        return bool(response.success), str(response.message)

    def status(self, key: str) -> str:
        """A value of the newest `arm/status`."""
        return value(self.statuses.messages[-1], key)

    def counts(self) -> dict[str, int]:
        """Refusals and limits, counted by the arm node."""
        found: dict[str, int] = json.loads(self.status("counts"))
        return found

    def wait_state(self, *states: str, timeout_s: float = 10.0) -> DiagnosticArray:
        """The first coming status with one of `states`."""
        message: DiagnosticArray = self.statuses.wait(
            lambda found: value(found, "state") in states, after=len(self.statuses.messages) - 1, timeout_s=timeout_s
        )
        return message

    def wait_moving(self) -> None:
        """Returns once the joint has moved by 0.05 rad from here."""
        start = joint(self.applied.messages[-1]) if self.applied.messages else joint(self.applied.wait())
        self.applied.wait(lambda message: abs(joint(message) - start) > 0.05, after=len(self.applied.messages))

    def track(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Stamps (T,) ns and the joint's positions (T,) rad of all that went to the driver."""
        messages = list(self.applied.messages)
        return np.array([to_ns(m.header.stamp) for m in messages]), np.array([joint(m) for m in messages])


def value(message: DiagnosticArray, key: str) -> str:
    """A value of an `arm/status`."""
    return str({pair.key: pair.value for pair in message.status[0].values}[key])


def joint(message: JointTrajectory) -> float:
    """Position of the swung joint in an `arm/applied`."""
    return float(by_name([JOINT], message.joint_names, message.points[0].positions, what="arm/applied")[0])


def assert_at_rest_from(driver: Driver, event_ns: int, *, within_s: float) -> None:
    """Checks that what went to the driver changed before `event_ns` and is constant from `within_s` after it on."""
    stamps, positions = driver.track()
    before = positions[(stamps > event_ns - 500_000_000) & (stamps < event_ns)]
    after = positions[stamps > event_ns + within_s * 1e9]
    assert np.ptp(before) > 0.01, "the arm did not move before"
    assert len(after) > 10, "nothing was heard after"
    assert np.ptp(after) == 0.0, f"the arm moved by {np.ptp(after)} rad after it should have been at rest"
