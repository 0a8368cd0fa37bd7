"""A fault table over a real ROS graph: arm node, recorder and a sender that is killed, each a process; this one does the faults."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rl_core.errors import ArmstackError
from robot_bridge.arms.registry import SIMULATED
from robot_bridge.control.settings import FilterSettings
from robot_bridge.faults.arm_node import MARKS
from robot_bridge.faults.bag_trace import read_trace
from robot_bridge.faults.catalogue import Fault
from robot_bridge.faults.graph_stage import GUARD, GraphStage
from robot_bridge.faults.judge import Cell, judge
from robot_bridge.faults.run import inject_all
from robot_bridge.launch_file import ProcessSpec
from robot_bridge.launch_runner import Launch

_START_S = 120.0
_LINES = 60


class FaultRunError(ArmstackError):
    """The graph did not do what was asked; says what it said last."""


class KilledSender:
    """The sender that is killed: started in time, told when to send."""

    def __init__(self, namespace: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "robot_bridge.faults.sender_process", namespace or "/"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self._ready = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline():
            self._ready.set()

    def start(self) -> None:
        """It sweeps the arm from now on."""
        if not self._ready.wait(_START_S):
            raise FaultRunError("the sender that is to be killed does not start")
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """kill -9."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(10.0)


def fault_table(
    arm: str,
    faults: Sequence[Fault],
    folder: Path,
    *,
    parameters: Mapping[str, Any] | None = None,
    config: Path | None = None,
    namespace: str = "",
    progress: Callable[[Fault], None] = lambda fault: None,
) -> list[Cell]:
    """Does every fault to an arm and judges what went to its driver, by `arm/applied` in the bag.

    The arm moves: one joint to and fro at 0.3 rad/s at most. rclpy must be initialised in the domain that ROS_DOMAIN_ID names.

    Args:
        arm: `simulated`, or a driver's name.
        faults: in order.
        folder: the bag is written to `folder/bag`.
        parameters: of the arm node, the driver's settings among them.
        config: parameter file of the arm node.
        namespace: of all nodes.
        progress: called before each fault.

    Raises:
        FaultRunError: a node ended.
        ArmstackError: the arm is not heard, or nothing was recorded.
    """
    import rclpy

    values: dict[str, Any] = {"arm": arm, "required_guards": [GUARD], **(parameters or {})}
    if arm == SIMULATED:
        values.setdefault("episodes", "on_request")
    arguments = ["--ros-args", *(["--params-file", str(config)] if config else [])]
    for name, value in values.items():
        arguments += ["-p", f"{name}:={_parameter(value)}"]
    if namespace:
        arguments += ["-r", f"__ns:=/{namespace}"]
    bag = folder / "bag"
    topics = f"[{_topic(namespace, 'arm/applied')}, {_topic(namespace, MARKS)}]"
    python = (sys.executable, "-m")
    specs = [
        ProcessSpec(name="arm", command=(*python, "robot_bridge.faults.arm_node", *arguments), shutdown_on_exit=True),
        ProcessSpec(
            name="recorder",
            command=(*python, "robot_bridge.nodes", "recorder_node", "--ros-args", "-p", f"folder:={bag}", "-p", f"topics:={topics}"),
            shutdown_on_exit=True,
        ),
    ]
    lines: deque[str] = deque(maxlen=_LINES)
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    killed = KilledSender(f"/{namespace}") if any(fault.place == "sender" for fault in faults) else None
    launch = Launch(specs, env=env, emit=lines.append)
    node = rclpy.create_node("fault_injection", namespace=namespace)
    try:
        with launch, GraphStage(node, killed, values) as stage:
            _wait_for_recorder(node, launch, lines)
            stage.wait_arm(_START_S)
            injections = inject_all(stage, faults, progress)
            limits = stage.limits
            if launch.exit_codes:
                raise FaultRunError(f"ended during the faults: {launch.exit_codes} (name: exit code)")
    except Exception as error:
        raise FaultRunError(f"{arm}: {error}; last output:\n" + "\n".join(f"  {line}" for line in lines)) from error
    finally:
        if killed is not None:
            killed.kill()
        node.destroy_node()
    trace = read_trace(bag, limits.names, applied=_topic(namespace, "arm/applied"), marks=_topic(namespace, MARKS))
    return [judge(trace, injection, limits, FilterSettings()) for injection in injections]


def _topic(namespace: str, name: str) -> str:
    return f"/{namespace}/{name}" if namespace else f"/{name}"


def _parameter(value: Any) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list | tuple) else str(value)


def _wait_for_recorder(node: Any, launch: Launch, lines: deque[str]) -> None:
    """Returns once the recorder hears what it is to record."""
    deadline = time.monotonic() + _START_S
    while any(node.count_publishers(name) == 0 or node.count_subscribers(name) == 0 for name in ("arm/applied", MARKS)):
        if launch.exit_codes:
            raise FaultRunError(f"ended at the start: {launch.exit_codes} (name: exit code)")
        if time.monotonic() > deadline:
            raise FaultRunError(f"arm node and recorder do not run after {_START_S:g} s")
        time.sleep(0.05)
