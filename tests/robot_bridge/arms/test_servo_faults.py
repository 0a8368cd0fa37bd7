"""Servo arms behind the control loop: what goes wrong on the bus is a fault, and only an operator ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from robot_bridge.arms.base import ArmLost
from robot_bridge.control.clock import SystemClock
from robot_bridge.control.command import JointCommand, Refusal
from robot_bridge.control.filter import CommandFilter
from robot_bridge.control.loop import ControlLoop
from tests.robot_bridge.arms.bad_line import drive_on_a_bad_line
from tests.robot_bridge.arms.killing import kill_moving_arm_node, servos_logged, stated_s
from tests.robot_bridge.arms.servo_bench import Bench
from tests.robot_bridge.command_line import Cli
from tests.ros_graph import Graph, graph, ros

__all__ = ["graph", "ros"]

ARMS = ["so101", "koch_v1_1"]


class Driven:
    """A servo arm driven in line, one control period after the other."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.loop = ControlLoop(arm=bench.arm, filter=CommandFilter(bench.arm.limits), clock=bench.clock)
        bench.seconds(10.0)
        bench.arm.connect()
        self.loop.restart()
        self.loop.take("policy", "a")

    def send(self, delta: float = 0.05, *, target: float | None = None) -> Refusal | None:
        positions = self.bench.arm.read().positions
        positions[0] = positions[0] + delta if target is None else target
        command = JointCommand(
            stamp_ns=self.bench.clock.source_ns(),
            source="policy",
            sender="a",
            names=self.bench.arm.joint_names,
            positions=positions[None],
            time_from_start_s=np.array([0.1]),
        )
        return self.loop.receive(command)

    def periods(self, count: int) -> None:
        for _ in range(count):
            self.loop.tick()
            self.bench.seconds(0.01)


@pytest.fixture(params=ARMS)
def driven(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Driven]:
    bench = Bench(tmp_path, request.param)
    with bench.bus:
        yield Driven(bench)


def torque_off(bench: Bench) -> None:
    bench.servo("elbow_flex").set("Torque_Enable", 0)


def overload(bench: Bench) -> None:
    bench.servo("elbow_flex").overload()


def test_it_moves_by_commands_through_the_filter(driven: Driven) -> None:
    start = driven.bench.arm.read().positions[0]
    for _ in range(20):
        assert driven.send() is None
        driven.periods(5)
    assert driven.loop.status().state == "moving"
    assert driven.bench.arm.read().positions[0] > start + 0.2


@pytest.mark.parametrize(("trouble", "says"), [(torque_off, "torque is off"), (overload, "overload")])
def test_trouble_of_a_servo_is_a_fault_that_only_a_rearm_ends(driven: Driven, trouble: Callable[[Bench], None], says: str) -> None:
    bench, loop = driven.bench, driven.loop
    driven.send()
    driven.periods(3)
    with bench.bus.lock:
        trouble(bench)
    with pytest.raises(ArmLost, match=says):
        driven.periods(20)
    assert loop.status().state == "fault" and says in loop.status().reason
    with bench.bus.lock:
        bench.servo("elbow_flex").reboot()
        bench.servo("elbow_flex").set("Torque_Enable", 0)
    bench.arm.connect()
    loop.restart()
    held = bench.servo("shoulder_pan").shaft
    assert loop.take("policy", "a") is None
    refusal = driven.send()
    assert refusal is not None and refusal.reason == "fault"
    driven.periods(50)
    assert bench.servo("shoulder_pan").shaft == pytest.approx(held, abs=1.5)
    assert loop.rearm() is None
    assert loop.take("policy", "a") is None
    assert driven.send() is None
    driven.periods(10)
    assert loop.status().state == "moving"


@pytest.mark.parametrize("target", [float("nan"), float("inf")])
def test_pain_14_a_target_that_is_no_number_holds_the_arm(driven: Driven, target: float) -> None:
    driven.send()
    driven.periods(3)
    refusal = driven.send(target=target)
    assert refusal is not None and refusal.reason == "not_finite"
    driven.periods(50)
    assert driven.loop.status().state == "holding"
    held = driven.bench.servo("shoulder_pan").shaft
    driven.periods(20)
    assert driven.bench.servo("shoulder_pan").shaft == pytest.approx(held, abs=0.5)


# -- behind the arm node, in a real graph ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["so101", "wx250"])
def test_on_a_bad_line_the_arm_node_keeps_to_the_limits_and_every_damaged_reply_is_counted(
    graph: Graph, tmp_path: Path, model: str
) -> None:
    figures = drive_on_a_bad_line(graph, tmp_path, model, seconds=4.0)
    assert figures["missing_replies"] > 20 and figures["damaged_sync_writes"] > 2
    assert figures["lost"] - figures["late"] <= figures["missing_replies"] <= figures["lost"]
    assert figures["goals_outside_limits"] == 0 and figures["largest_share_of_velocity_limit"] <= 1.0
    assert figures["followed_within_rad"] < 0.05


@pytest.mark.parametrize("model", ["so101", "wx250"])
def test_after_kill_9_of_the_arm_node_motion_ends_within_the_time_that_the_safety_report_states(
    graph: Graph, tmp_path: Path, cli: Cli, model: str
) -> None:
    """Read from the emulator's side. Feetech's servos have no watchdog and go on to their last target, one period away."""
    bench = Bench(tmp_path, model, clock=SystemClock())
    settings = {"model": model, "port": bench.bus.port, "calibration": str(bench.file)}
    arm, log = bench.model.protocol, tmp_path / "joints"
    with bench.bus, servos_logged(bench.bus, [joint.id for joint in bench.model.joints], log):
        moved_s = kill_moving_arm_node(graph, log, f"arm:={arm}", *(f"{key}:={value}" for key, value in settings.items()))
    config = tmp_path / "arm.yaml"
    config.write_text("/**:\n  ros__parameters:\n" + "".join(f"    {key}: {value}\n" for key, value in settings.items()))
    assert moved_s <= stated_s(cli, arm, "--config", str(config)) < (0.75 if arm == "dynamixel" else 0.25)
