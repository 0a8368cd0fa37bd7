"""`armstack bench jitter`: how evenly the control loop of each arm runs at 100 Hz, beside a bare rclpy timer at 100 Hz in the same run.

Each arm is driven through its arm node, by a small sine at 20 Hz, in a process of its own: the simulated arm, servos on an emulated bus
that loses one byte in a hundred, and, where `make sims` was run, simulators of Franka's and Trossen's protocols. Jitter is how far the
time between two periods is from 10 ms. The timer does nothing in its callback: what it jitters by, this machine takes away.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from robot_bridge.ros_environment import prepare_ros_environment

PERIOD_S = 0.01
_SETTLE_S = 2.0
_SWING = (0.02, 2.0)  # rad, s
_SIMS = Path(".venv-sims/bin")
_TESTED = "tests.robot_bridge.arms"  # its benches and simulators serve here too


def main(seconds: float = 60.0) -> dict[str, Any]:
    """Jitter of every arm's loop and of the timer that ran beside it.

    Returns:
        `ours` and `peer`: p99 of the arm that compares worst, and of the timer beside it, milliseconds; `ratio` = peer / ours, of which two
        thirds or more is the aim; `arms`: all figures.
    """
    arms = ["simulated", "servos"]
    arms += [arm for arm, program in (("franka", "franky-sim"), ("trossen", "trossen-arm-sim")) if (_SIMS / program).exists()]
    figures = {arm: _beside_a_timer(arm, seconds) for arm in arms}
    worst = min(figures, key=lambda arm: figures[arm]["ratio_p99"])
    return {
        "ours": figures[worst]["loop_ms"]["p99"],
        "peer": figures[worst]["timer_ms"]["p99"],
        "ratio": figures[worst]["ratio_p99"],
        "peer_name": "bare rclpy timer on the EventsExecutor",
        "setting": f"p99 of the jitter at 100 Hz, ms, {seconds:.0f} s, the worst arm ({worst}); {os.cpu_count()} cores, "
        f"load {os.getloadavg()[1]:.1f}",
        "arms": figures,
    }


def _beside_a_timer(arm: str, seconds: float) -> dict[str, Any]:
    env = {**os.environ, "ROS_DOMAIN_ID": str(os.getpid() % 100 + 1), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "OMP_NUM_THREADS": "1"}
    prepare_ros_environment(env)
    with ExitStack() as stack:
        settings = stack.enter_context(_behind(arm, Path(stack.enter_context(tempfile.TemporaryDirectory()))))
        roles = {"arm": [json.dumps(settings)], "timer": []}
        processes = {
            role: subprocess.Popen(
                [sys.executable, "-m", __name__, role, str(seconds), *more],
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for role, more in roles.items()
        }
        try:
            for process in processes.values():
                assert process.stdout is not None
                if process.stdout.readline() != "ready\n":
                    raise RuntimeError(f"benchmark process of {arm} ended with exit code {process.wait()}")
            for process in processes.values():  # begin together
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
            found = {role: json.loads(process.communicate(timeout=seconds + 60)[0].splitlines()[-1]) for role, process in processes.items()}
        finally:
            for process in processes.values():
                process.kill()
    loop, timer = found["arm"], found["timer"]
    return {
        "loop_ms": loop["jitter_ms"],
        "timer_ms": timer["jitter_ms"],
        "ratio_p99": timer["jitter_ms"]["p99"] / loop["jitter_ms"]["p99"],
        "loop_hz": loop["hz"],
        "reads_hz": loop["reads_hz"],
        "missed": loop["missed"],
    }


@contextmanager
def _behind(arm: str, folder: Path) -> Iterator[dict[str, Any]]:
    """What answers the driver of `arm`; gives the arm node's parameters."""
    if arm == "simulated":
        yield {"arm": arm, "horizon": 10**9}
    elif arm == "servos":
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, "servos", "0", str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            yield {"arm": "feetech", **json.loads(process.stdout.readline())}
        finally:
            process.kill()
    else:
        simulators = importlib.import_module(f"{_TESTED}.simulators")
        with {"franka": simulators.franky_sim, "trossen": simulators.trossen_sim}[arm]() as host:
            yield {"arm": arm, "host": host}


def _figures(stamps_s: list[float]) -> dict[str, Any]:
    between = np.diff(np.array(stamps_s))
    p50, p95, p99 = (1e3 * float(value) for value in np.percentile(np.abs(between - PERIOD_S), [50, 95, 99]))
    return {"jitter_ms": {"p50": p50, "p95": p95, "p99": p99}, "hz": float(1 / between.mean())}


def _ready() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()


def _arm(seconds: float, settings: Mapping[str, Any]) -> None:
    import rclpy
    from rclpy.parameter import Parameter

    from robot_bridge.control.command import JointCommand
    from robot_bridge.nodes.arm_node import ArmNode
    from robot_bridge.nodes.spin import spin

    rclpy.init()
    node = ArmNode(parameter_overrides=[Parameter(name, value=value) for name, value in settings.items()])
    stamps: list[float] = []
    reads = [0]
    publisher: Any = node._publisher
    driver: Any = getattr(node.arm, "driver", node.arm)
    publish, read = publisher.applied, driver.read

    def applied(periods: Any, *rest: Any) -> None:
        stamps.extend(period.stamp_ns * 1e-9 for period in periods)
        publish(periods, *rest)

    def counted() -> Any:
        reads[0] += 1
        return read()

    publisher.applied, driver.read = applied, counted
    over = threading.Event()

    def swing() -> None:
        node.loop.take("policy", "bench")
        begin, start = time.monotonic(), node.arm.read().positions
        while not over.wait(5 * PERIOD_S):
            target = start.copy()
            target[0] += _SWING[0] * math.sin(2 * math.pi * (time.monotonic() - begin) / _SWING[1])
            now_ns = time.time_ns()
            command = JointCommand(
                stamp_ns=now_ns, source="policy", sender="bench", names=node.arm.joint_names, positions=target[None],
                time_from_start_s=np.array([0.1]),
            )  # fmt: skip
            node.loop.receive(command)

    _ready()
    sender = threading.Thread(target=swing, daemon=True)
    sender.start()
    settled = time.monotonic() + _SETTLE_S
    spin(node, until=lambda: time.monotonic() > settled, failure=node.failure)
    stamps.clear()
    reads[0], missed = 0, node.loop.status().counts["missed_deadline"]
    begin = time.monotonic()
    spin(node, until=lambda: time.monotonic() > begin + seconds, failure=node.failure)
    elapsed, status = time.monotonic() - begin, node.loop.status()
    over.set()
    sender.join()
    if status.state == "fault":
        raise RuntimeError(status.reason)
    figures = {**_figures(stamps), "reads_hz": reads[0] / elapsed, "missed": status.counts["missed_deadline"] - missed}
    node.close()
    node.destroy_node()
    rclpy.try_shutdown()
    sys.stdout.write(json.dumps(figures) + "\n")


def _timer(seconds: float) -> None:
    import rclpy
    from rclpy.node import Node

    from robot_bridge.nodes.spin import spin

    rclpy.init()
    node = Node("bare_timer")
    stamps: list[float] = []
    node.create_timer(PERIOD_S, lambda: stamps.append(time.monotonic()))
    _ready()
    settled = time.monotonic() + _SETTLE_S
    spin(node, until=lambda: time.monotonic() > settled)
    stamps.clear()
    end = time.monotonic() + seconds
    spin(node, until=lambda: time.monotonic() > end)
    node.destroy_node()
    rclpy.try_shutdown()
    sys.stdout.write(json.dumps(_figures(stamps)) + "\n")


def _servos(folder: Path) -> None:
    """An SO-101 on an emulated bus, which loses one byte in a hundred as soon as the arm is connected."""
    from robot_bridge.nodes.clocks import ScaledClock

    bench = importlib.import_module(f"{_TESTED}.servo_bench").Bench(folder, "so101", clock=ScaledClock())
    with bench.bus:
        settings = {"model": "so101", "port": str(bench.bus.port), "calibration": str(bench.file)}
        sys.stdout.write(json.dumps(settings) + "\n")
        sys.stdout.flush()
        while not all(servo.get("Torque_Enable") for servo in bench.bus.servos.values()):
            time.sleep(0.1)
        time.sleep(0.5)
        bench.faults.byte_loss = 0.01
        threading.Event().wait()


if __name__ == "__main__":
    role, seconds = sys.argv[1], float(sys.argv[2])
    if role == "arm":
        _arm(seconds, json.loads(sys.argv[3]))
    elif role == "timer":
        _timer(seconds)
    else:
        _servos(Path(sys.argv[3]))
