"""`armstack bench ros`: a policy node at 50 Hz beside a bare rclpy timer at 50 Hz, in the same run, each in a process of its own.

The policy node drives the simulated arm in real time: three hidden layers of 256, decoding with inverse kinematics, publishing. A deadline
is missed when a period begins a whole period late. The peer does nothing in its callback: what it misses, this machine takes away.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from robot_bridge.ros_environment import prepare_ros_environment

PERIOD_S = 0.02
_SETTLE_S = 3.0


def main(seconds: float = 60.0) -> dict[str, Any]:
    """Deadline misses of the policy node and of a bare timer, and what filter and publishing cost.

    Returns:
        `ours` and `peer`: share of periods missed; `ratio` = (peer + 1) / (ours + 1) in missed periods, so that none at all compares too.
    """
    domain = str(os.getpid() % 100 + 1)
    env = {**os.environ, "ROS_DOMAIN_ID": domain, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "OMP_NUM_THREADS": "1"}
    prepare_ros_environment(env)
    roles = ("arm", "timer", "policy")
    processes = {
        role: subprocess.Popen([sys.executable, "-m", __name__, role, str(seconds)], env=env, stdout=subprocess.PIPE, text=True)
        for role in roles
    }
    figures: dict[str, dict[str, Any]] = {}
    try:
        for role, process in processes.items():
            output, _ = process.communicate(timeout=seconds + 120)
            if process.returncode != 0:
                raise RuntimeError(f"benchmark process {role!r} ended with exit code {process.returncode}")
            figures[role] = json.loads(output.splitlines()[-1])
    finally:
        for process in processes.values():
            process.kill()
    policy, timer = figures["policy"], figures["timer"]
    return {
        "ours": policy["missed"] / policy["periods"],
        "peer": timer["missed"] / timer["periods"],
        "ratio": (timer["missed"] + 1) / (policy["missed"] + 1),
        "peer_name": "bare rclpy timer on the EventsExecutor",
        "setting": f"{seconds:.0f} s at {1 / PERIOD_S:.0f} Hz, share of periods that began a period late, same run, {os.cpu_count()} cores",
        "periods": policy["periods"],
        "missed": policy["missed"],
        "skipped": policy["skipped"],
        "latency_ms": {**policy["latency_ms"], **figures["arm"]["latency_ms"]},
        **_filter_and_publish(),
    }


@contextmanager
def _node(make: Callable[[], Any]) -> Iterator[Any]:
    """A node made and closed; rclpy's context around it."""
    import rclpy

    rclpy.init()
    node = make()
    try:
        yield node
    finally:
        getattr(node, "close", lambda: None)()
        node.destroy_node()
        rclpy.try_shutdown()


def _emit(figures: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(figures) + "\n")


def _arm(seconds: float) -> None:
    from rclpy.parameter import Parameter

    from robot_bridge.nodes.arm_node import ArmNode
    from robot_bridge.nodes.simulated_world import WorldArm
    from robot_bridge.nodes.spin import spin

    class FastArm(WorldArm):
        """Offers the actions of a 50 Hz policy."""

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.contracts = tuple(replace(c, action=replace(c.action, period_s=PERIOD_S)) for c in self.contracts)

    overrides = [Parameter("horizon", value=10**9)]
    with _node(lambda: ArmNode(make_arm=FastArm, parameter_overrides=overrides)) as node:
        end = time.monotonic() + seconds + 30
        spin(node, until=lambda: time.monotonic() > end or _alone(node), failure=node.failure)
        _emit({"latency_ms": node._latency.milliseconds()})


def _alone(node: Any) -> bool:
    """True once a policy was there and is gone."""
    there = node.count_publishers("arm/command") > 0
    node.seen = getattr(node, "seen", False) or there
    return node.seen and not there


def _policy(seconds: float) -> None:
    import torch

    from rl_core.policy import ActionChunk, PolicyState, StatelessPolicy, flatten_observation
    from robot_bridge.nodes.policy_node import PolicyNode
    from robot_bridge.nodes.spin import spin
    from sim_envs.arm.observation import world_contract

    torch.set_num_threads(1)
    contract = world_contract("lift")
    contract = replace(contract, action=replace(contract.action, period_s=PERIOD_S))

    class Network(StatelessPolicy):
        """Random weights, small actions."""

        def __init__(self) -> None:
            self.contract = contract
            sizes = (contract.observation_size, 256, 256, 256, contract.action.size)
            layers = [layer for a, b in zip(sizes, sizes[1:], strict=False) for layer in (torch.nn.Linear(a, b), torch.nn.Tanh())]
            self._network = torch.nn.Sequential(*layers)

        def act(self, obs: Any, condition: Any, state: PolicyState) -> tuple[ActionChunk, PolicyState]:
            values = 0.05 * self._network(flatten_observation(contract, obs))
            return ActionChunk(values=values[:, None], period_s=PERIOD_S), state

    with _node(lambda: PolicyNode(policy=Network())) as node:
        begin: list[tuple[float, int, int]] = []

        def over() -> bool:
            worker = node._worker
            if worker is None or worker.latency.periods < _SETTLE_S / PERIOD_S:
                return False
            if not begin:
                begin.append((time.monotonic(), worker.latency.periods, worker.latency.missed))
            return time.monotonic() > begin[0][0] + seconds

        spin(node, until=over, failure=node.failure)
        latency = node._worker.latency
        _, periods, missed = begin[0]
        _emit(
            {
                "periods": latency.periods - periods,
                "missed": latency.missed - missed,
                "skipped": node._worker.skipped,
                "latency_ms": latency.milliseconds(),
            }
        )


def _timer(seconds: float) -> None:
    from rclpy.node import Node

    from robot_bridge.nodes.spin import spin

    with _node(lambda: Node("bare_timer")) as node:
        counts = {"periods": 0, "missed": 0}
        due: list[float] = []

        def tick() -> None:
            now = time.monotonic()
            late = max(0, int((now - due[0]) / PERIOD_S)) if due else 0
            due[:] = [(due[0] if due else now) + (late + 1) * PERIOD_S]
            counts["periods"] += 1
            counts["missed"] += late

        node.create_timer(PERIOD_S, tick)
        settled = time.monotonic() + _SETTLE_S
        spin(node, until=lambda: time.monotonic() > settled)
        counts.update(periods=0, missed=0)
        end = time.monotonic() + seconds
        spin(node, until=lambda: time.monotonic() > end)
        _emit(counts)


def _filter_and_publish(periods: int = 500) -> dict[str, float]:
    """Median milliseconds of building and publishing one `arm/applied`, with and without the filter step before it."""
    from trajectory_msgs.msg import JointTrajectory

    from robot_bridge.control.command import JointCommand
    from robot_bridge.control.filter import CommandFilter
    from robot_bridge.control.kinematics import Kinematics
    from robot_bridge.control.settings import FilterSettings
    from robot_bridge.nodes.messages import trajectory
    from robot_bridge.nodes.qos import STREAM, advertise
    from robot_bridge.nodes.simulated_world import WorldArm

    settings = FilterSettings()
    arm = WorldArm("lift", settings)
    kinematics = Kinematics(arm.world.kinematics_xml())
    filter_ = CommandFilter(arm.limits, settings, forward=kinematics.fk)
    measured = arm.read()
    filter_.restart(measured, 0)
    filter_.authority.take("policy", 0)
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    from rclpy.node import Node

    def positions(period: int) -> np.ndarray:
        target = measured.positions.copy()
        target[:7] += 0.1 * np.sin(0.01 * period)
        return target[None]

    times: dict[str, list[float]] = {"filter": [], "publish": []}
    with _node(lambda: Node("publish_cost")) as node:
        publisher = advertise(node, JointTrajectory, "arm/applied", STREAM)
        for period in range(periods):
            now_ns = period * 10_000_000
            if period % 5 == 0:
                command = JointCommand(
                    stamp_ns=now_ns, source="policy", sender="bench", names=arm.joint_names, positions=positions(period),
                    time_from_start_s=np.array([0.1]),
                )  # fmt: skip
                filter_.receive(command, now_ns, now_ns)
            start = time.perf_counter()
            output = filter_.step(measured, now_ns, now_ns)
            between = time.perf_counter()
            publisher.publish(trajectory(arm.joint_names, output.positions[None], np.array([0.01]), stamp_ns=now_ns, source="filter"))
            times["filter"].append(between - start)
            times["publish"].append(time.perf_counter() - between)
    filter_ms, publish_ms = (float(np.median(times[key]) * 1e3) for key in ("filter", "publish"))
    return {"publish_ms": publish_ms, "filter_and_publish_ms": filter_ms + publish_ms, "filter_ms": filter_ms}


if __name__ == "__main__":
    {"arm": _arm, "policy": _policy, "timer": _timer}[sys.argv[1]](float(sys.argv[2]))
