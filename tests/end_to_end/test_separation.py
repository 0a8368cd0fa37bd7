"""Speed and separation over a real graph: a simulated person walks up to the moving arm; the guard and its distances fail."""

from __future__ import annotations

import json
import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.parameter import Parameter
from std_msgs.msg import Float32
from trajectory_msgs.msg import JointTrajectory

from robot_bridge.control.arm_shape import ArmShape
from robot_bridge.nodes.qos import SENSOR, advertise
from robot_bridge.nodes.separation_node import SeparationNode
from robot_bridge.nodes.simulated_person_node import SimulatedPersonNode
from robot_bridge.nodes.spin import NodeError, SpinThread
from robot_bridge.nodes.stamps import to_ns
from tests.end_to_end.driver import Driver, arm_node, assert_at_rest_from, value
from tests.end_to_end.test_e_stop import BRAKING_S
from tests.ros_graph import AnyNode, Graph

LIMIT_M = 0.5
GUARD = {"limit_m": LIMIT_M, "error_m": 0.02, "latency_s": 0.05, "max_age_s": 0.4}
REQUIRED = {"required_guards": ["separation"], "separation_required": True}
PATH = "0 3.2 0.3; 1 3.2 0.3; 3.2 0.95 0.1; 4.7 0.95 0.1; 6.7 3.2 0.3"  # at 1.0 m/s, and a while within the limit
RADIUS_M = 0.1
_STILL = 2e-4  # rad, m


@contextmanager
def _spinning(node: AnyNode) -> Iterator[AnyNode]:
    with SpinThread(node, failure=node.failure):
        yield node
    node.destroy_node()


def _parameters(**values: object) -> list[Parameter]:
    return [Parameter(name, value=value) for name, value in values.items()]


def _held_because(status: DiagnosticArray) -> str:
    return str(json.loads(value(status, "holds")).get("separation", ""))


def _wait_held(driver: Driver, why: str) -> int:
    """The stamp of the first coming status that says that the guard holds the arm, and why."""
    message = driver.statuses.wait(
        lambda m: value(m, "state") == "holding" and why in _held_because(m), after=len(driver.statuses.messages) - 1, timeout_s=20
    )
    return to_ns(message.header.stamp)


def test_nothing_moves_while_a_person_is_within_the_limit(graph: Graph) -> None:
    with arm_node(**REQUIRED) as arm, _spinning(SeparationNode(parameter_overrides=_parameters(**GUARD))):
        driver = Driver(graph)
        _wait_held(driver, "no distance")
        scales = graph.collect(Float32, "safety/speed_scale")
        walk = _parameters(path=PATH, repeat=False, rate_hz=20.0, arm_radius_m=RADIUS_M)
        with _spinning(SimulatedPersonNode(parameter_overrides=walk)) as person:
            driver.statuses.wait(lambda m: value(m, "holds") == "{}", after=len(driver.statuses.messages), timeout_s=20)
            driver.take()
            driver.start()
            _wait_held(driver, "person at")
            driver.statuses.wait(lambda m: value(m, "holds") == "{}", after=len(driver.statuses.messages), timeout_s=20)
            driver.wait_moving()  # after a guard's hold motion goes on by itself
            driver.stop()
            shape, begin_ns = ArmShape(arm.arm.description, arm.arm.limits.names[:7]), person.begin_ns
            assert begin_ns is not None
        sent = [(to_ns(m.header.stamp), np.array(m.points[0].positions)) for m in list(driver.applied.messages)]
        measured = {to_ns(m.header.stamp): np.array(m.position) for m in list(driver.states.messages)}

        def distance(stamp_ns: int, positions: np.ndarray) -> float:
            capsules = person.walker.capsules((stamp_ns - begin_ns) * 1e-9)
            return shape.distance(positions[:7], capsules, person.walker.radii, thickness=RADIUS_M)

    stamps, positions = np.array([stamp for stamp, _ in sent]), np.array([joints for _, joints in sent])
    true = np.array([distance(stamp, joints) for stamp, joints in sent])
    within = np.flatnonzero(true < LIMIT_M)
    assert len(within) > 50, "they were hardly within the limit: this shows nothing"
    stood = positions[within[0] : within[-1] + 1]
    assert np.ptp(stood, axis=0).max() < _STILL  # on a starved machine the output is set to where the arm is, by a hair
    found = np.array([joints for stamp, joints in measured.items() if stamps[within[0]] <= stamp <= stamps[within[-1]]])
    assert np.ptp(found, axis=0).max() < 0.003  # servos that come to rest behind what they are sent

    # It was slowed before it was held, and held before they were within the limit.
    shown = np.array([message.data for message in scales.messages])
    assert shown.max() > 0.25 and ((shown > 0.02) & (shown < 0.2)).sum() >= 3
    assert driver.counts()["speed_scale"] >= 3
    rates = np.abs(np.diff(positions, axis=0)).max(axis=1) / np.maximum(np.diff(stamps) * 1e-9, 1e-6)
    last = np.flatnonzero(rates[: within[0]] > 0.01)[-1]
    assert LIMIT_M + 0.05 < true[last] < 2.0
    assert rates[within[-1] :].max() > 0.1, "the arm did not move after they left"


class Sensor:
    """Distances at 20 Hz."""

    def __init__(self, graph: Graph) -> None:
        self.distance: float | None = 5.0
        """None: nothing is sent."""
        self._publisher = advertise(graph.probe, Float32, "human/distance", SENSOR)

    @contextmanager
    def heard(self) -> Iterator[None]:
        def send() -> None:
            while not over.wait(0.05):
                if self.distance is not None:
                    self._publisher.publish(Float32(data=self.distance))

        over = threading.Event()
        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def test_the_arm_is_held_when_distances_or_the_guard_fail(graph: Graph) -> None:
    arguments = [word for name, given in GUARD.items() for word in ("-p", f"{name}:={given}")]
    sensor = Sensor(graph)
    with arm_node(**REQUIRED), sensor.heard():
        driver = Driver(graph)
        _wait_held(driver, "separation is required")
        guard = graph.process("robot_bridge.nodes.separation_node", "--ros-args", *arguments)
        driver.statuses.wait(lambda m: value(m, "holds") == "{}", after=len(driver.statuses.messages), timeout_s=60)
        driver.take()
        driver.start()
        driver.wait_moving()

        sensor.distance = math.nan
        _wait_held(driver, "distance nan m, valid: finite")
        sensor.distance = 5.0
        driver.wait_moving()

        sensor.distance = None
        _wait_held(driver, "s old")
        sensor.distance = 5.0
        driver.wait_moving()

        guard.kill()
        held_ns = _wait_held(driver, "s old")  # the distance that was judged last
        _wait_held(driver, "no speed scale was received within 1 s")
        driver.applied.wait(after=len(driver.applied.messages) + 50)
        driver.stop()
        assert_at_rest_from(driver, held_ns, within_s=BRAKING_S + 0.5)


def test_the_launch_file_shows_an_arm_that_is_held_and_goes_on(graph: Graph) -> None:
    statuses, applied = graph.collect(DiagnosticArray, "arm/status"), graph.collect(JointTrajectory, "arm/applied")
    path = "path:=0 2.6 0.3; 1 2.6 0.3; 2.3 1.05 0.1; 2.8 1.05 0.1; 4 2.6 0.3; 6 2.6 0.3"
    process = graph.process("robot_bridge.cli", "launch", "separation", path)
    for state in ("moving", "holding", "moving"):
        wanted = "person at" if state == "holding" else ""
        statuses.wait(
            lambda m, state=state, wanted=wanted: value(m, "state") == state and wanted in _held_because(m),
            after=len(statuses.messages),
            timeout_s=60,
        )
    rest = applied.messages[-1].points[0].positions[0]
    applied.wait(lambda m: abs(m.points[0].positions[0] - rest) > 0.1, after=len(applied.messages), timeout_s=60)
    assert process.end(signal.SIGINT, timeout_s=30) == 0


def test_a_launch_whose_radar_cannot_be_used_ends_with_its_error(graph: Graph) -> None:
    radar = ("radar:=true", "radar_bundle:=nothing/there", "error_m:=0.4", "latency_s:=0.4")
    process = graph.process("robot_bridge.cli", "launch", "separation", *radar)
    assert process.process.wait(120) == 1
    assert any("FATAL" in line and "nothing/there" in line for line in process.output.messages)


def test_a_sensor_that_nothing_is_known_of_is_refused(ros: int) -> None:
    with pytest.raises(NodeError, match="parameter error_m: nan, valid: the sensor's own"):
        SeparationNode(parameter_overrides=_parameters(latency_s=0.1))
    with pytest.raises(NodeError, match="parameter restart_delay_s: -1.0, valid"):
        SeparationNode(parameter_overrides=_parameters(**GUARD, restart_delay_s=-1.0))
