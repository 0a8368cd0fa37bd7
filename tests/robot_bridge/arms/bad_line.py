"""A servo arm behind the arm node in a real graph, on an emulated bus that loses bytes and spoils checksums."""

from __future__ import annotations

import datetime
import json
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rclpy.parameter import Parameter
from trajectory_msgs.msg import JointTrajectory

from robot_bridge.control.clock import SystemClock
from robot_bridge.faults.ros_sender import RosSender
from robot_bridge.nodes.arm_node import ArmNode
from robot_bridge.nodes.json_requests import JsonClient
from robot_bridge.nodes.messages import by_name
from robot_bridge.nodes.spin import SpinThread
from robot_bridge.ros_environment import prepare_ros_environment
from tests.robot_bridge.arms.following import wait
from tests.robot_bridge.arms.servo_bench import Bench
from tests.robot_bridge.faults.all_arms import PAGE, ROOT, refresh
from tests.ros_graph import Graph

RESULTS = ROOT / "results/faults/bad_line.json"

BYTE_LOSS = 0.01
BAD_CHECKSUM = 0.02
_LEG_S = 1.5
_PATIENCE_S = 0.012  # for replies: on a busy machine the emulator's thread is late


def drive_on_a_bad_line(graph: Graph, folder: Path, model: str, *, seconds: float) -> dict[str, Any]:
    """Sweeps the first joint to and fro through the arm node; gives what was counted on both sides of the wire."""
    bench = Bench(folder, model, clock=SystemClock())
    settings = {"model": model, "port": bench.bus.port, "calibration": str(bench.file)}
    overrides = [Parameter(name, value=value) for name, value in {"arm": bench.model.protocol, **settings}.items()]
    outside: list[str] = []
    with bench.bus:
        _watch_goals(bench, outside)
        node = ArmNode(parameter_overrides=overrides)
        try:
            with SpinThread(node, failure=node.failure):
                bus = node.arm.driver.bus  # type: ignore[union-attr]
                applied = graph.collect(JointTrajectory, "arm/applied")
                sender = RosSender(graph.probe)
                sender.wait(20.0)
                JsonClient(graph.probe, "arm/authority").call({"op": "take", "source": "policy"}, 20.0)
                bus._timeout_s = _PATIENCE_S
                with bench.bus.lock:
                    bus.counts.clear()
                    bench.faults.byte_loss, bench.faults.bad_checksum = BYTE_LOSS, BAD_CHECKSUM
                begin = time.monotonic()
                while time.monotonic() - begin < seconds:
                    sender.sender.start(sender.measured(), time.time_ns())
                    time.sleep(_LEG_S)
                sender.close()
                with bench.bus.lock:
                    bench.faults.byte_loss = bench.faults.bad_checksum = 0.0
                counted = bus.counts["replies"]
                wait(lambda: bus.counts["replies"] > counted + 50, "sound replies")  # whatever was late has come before
                status = node.loop.status()
        finally:
            node.close()
            node.destroy_node()
    names = bench.model.names
    sent = np.array([by_name(names, m.joint_names, m.points[0].positions, what="arm/applied") for m in applied.messages])
    measured = np.array([bench.calibration.joints[names[0]].position(round(bench.bus.servos[1].get("Present_Position")))])
    steps = np.diff(sent, axis=0)
    starts = ~np.roll(steps.any(axis=1), 1)  # a start stands where the arm is measured: no velocity
    velocity = np.abs(steps[~starts]) / node.loop.filter.settings.control_period_s
    return {
        "model": model, "seconds": seconds, "byte_loss": BYTE_LOSS, "bad_checksum": BAD_CHECKSUM, "state": status.state,
        "replies": bus.counts["replies"], "lost": bus.counts["lost"], "late": bus.counts["late"],
        "missing_replies": bench.faults.counts["missing_replies"], "damaged_sync_writes": bench.faults.counts["damaged_sync_writes"],
        "goals_outside_limits": len(outside), "outputs": len(sent),
        "largest_share_of_velocity_limit": float((velocity / np.array(node.arm.limits.velocity)).max()),
        "followed_within_rad": float(abs(measured[0] - sent[-1, 0])) % (2 * np.pi),
    }  # fmt: skip


def _watch_goals(bench: Bench, outside: list[str]) -> None:
    """Notes every goal that reached a servo and lies outside its joint's limits, from the servo's own side."""
    limits = bench.arm.limits
    for joint, low, high in zip(bench.model.joints, limits.position_min, limits.position_max, strict=True):
        servo, ends = bench.bus.servos[joint.id], sorted((bench.shaft(joint.name, low), bench.shaft(joint.name, high)))
        write = servo.write

        def watched(address: int, data: bytes, servo=servo, write=write, ends=ends, name=joint.name) -> int:
            error: int = write(address, data)
            if servo.get("Torque_Enable") and not ends[0] - 2 <= servo._target <= ends[1] + 2:
                outside.append(f"{name}: {servo._target}")
            return error

        servo.write = watched  # type: ignore[method-assign]


def main(seconds: float = 60.0) -> None:
    """`python -m tests.robot_bridge.arms.bad_line`: a minute of a bad line for two arms, into results/faults and the page of the faults."""
    os.environ |= {"ROS_DOMAIN_ID": str(os.getpid() % 100 + 1), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    prepare_ros_environment()
    rclpy.init()
    rows = []
    for model in ("so101", "wx250"):
        graph = Graph()
        with SpinThread(graph.probe), tempfile.TemporaryDirectory() as folder:
            rows.append(drive_on_a_bad_line(graph, Path(folder), model, seconds=seconds))
        graph.probe.destroy_node()
    rclpy.try_shutdown()
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps({"date": datetime.date.today().isoformat(), "rows": rows}, indent=1) + "\n")
    PAGE.write_text(refresh(PAGE.read_text(), {"bad_line": table(json.loads(RESULTS.read_text()))}))


def table(written: Mapping[str, Any]) -> str:
    """Markdown of what `main` wrote."""
    columns = [key for key in written["rows"][0] if key != "model"]
    lines = [f"date: {written['date']}", "", f"| | {' | '.join(row['model'] for row in written['rows'])} |", "|---" * 3 + "|"]
    return "\n".join(
        [*lines, *(f"| {key.replace('_', ' ')} | {' | '.join(_shown(row[key]) for row in written['rows'])} |" for key in columns)]
    )


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
