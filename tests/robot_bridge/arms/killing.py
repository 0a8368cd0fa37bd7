"""kill -9 of the arm node in a graph while the arm moves, seen from the simulator's side."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from std_srvs.srv import Trigger

from robot_bridge.faults.ros_sender import RosSender
from robot_bridge.nodes.json_requests import JsonClient, RequestError
from sim_envs.servo_bus.bus import EmulatedBus
from tests.robot_bridge.arms.following import wait
from tests.robot_bridge.command_line import Cli
from tests.ros_graph import Graph

AT_REST = 2e-3
"""rad: a joint that stays this close to where it ends is at rest."""
_WATCHED_S = 0.5
_SWEPT = 0.1


def kill_moving_arm_node(graph: Graph, log: Path, *parameters: str) -> float:
    """Seconds of the simulator from the kill to the end of motion.

    Args:
        graph: of the test.
        log: which the simulator writes: wall time [ns], simulated time [s], joints.
        parameters: `name:=value` of the arm node.
    """
    process = graph.process("robot_bridge.nodes", "arm_node", "--ros-args", *(word for text in parameters for word in ("-p", text)))
    process.wait_line("ready", 120.0)
    sender = RosSender(graph.probe)
    sender.wait(20.0)
    authority, rearm = JsonClient(graph.probe, "arm/authority"), graph.probe.create_client(Trigger, "arm/rearm")
    begin_ns, deadline = time.time_ns(), time.monotonic() + 60.0
    while swept(log, begin_ns) < _SWEPT and time.monotonic() < deadline:  # a busy machine may lose an arm that does not answer in time
        assert rearm.wait_for_service(10.0)
        rearm.call(Trigger.Request(), timeout_sec=10.0)
        with contextlib.suppress(RequestError):
            authority.call({"op": "take", "source": "policy"}, 20.0)
        sender.sender.start(sender.measured(), time.time_ns())
        trying = time.monotonic() + 3.0
        while swept(log, begin_ns) < _SWEPT and time.monotonic() < trying:
            time.sleep(0.01)
    wait(lambda: _moves(log), "motion")
    process.kill()
    killed_ns = time.time_ns()
    sender.close()
    return seconds_of_motion(log, killed_ns)


def seconds_of_motion(log: Path, killed_ns: int) -> float:
    """Seconds of the simulator from `killed_ns` (wall time) to the end of motion; waits for it.

    Raises:
        AssertionError: the arm did not move at `killed_ns`.
    """
    wait(lambda: _trail(log)[-1, 0] > killed_ns, "the simulator's next step")
    at_s = float(np.interp(killed_ns, *_trail(log)[:, :2].T))
    before = _trail(log)
    before = before[(before[:, 1] > at_s - 0.2) & (before[:, 1] <= at_s)]
    assert np.ptp(before[:, 2]) > 0.005, "the arm did not move when its node was killed"
    stopped_s = 0.0
    while True:  # until it has been at rest for a while
        wait(lambda: _trail(log)[-1, 1] > at_s + stopped_s + _WATCHED_S, "the simulator's time")  # noqa: B023
        trail = _trail(log)
        moving = np.abs(trail[:, 2:] - trail[-1, 2:]).max(axis=1) > AT_REST
        last = float(trail[moving, 1].max(initial=at_s))
        if last - at_s <= stopped_s:
            return stopped_s
        stopped_s = last - at_s


def stated_s(cli: Cli, arm: str, *options: str) -> float:
    """What `armstack safety-report` says of the end of motion after the process died, seconds."""
    outcome = cli("safety-report", arm, "--json", *options)
    assert outcome.status == 0, outcome.err
    return float(json.loads(outcome.out.splitlines()[-1])["stops_within_s"])


@contextmanager
def servos_logged(bus: EmulatedBus, ids: Sequence[int], log: Path) -> Iterator[None]:
    """Writes where the shafts of servos `ids` are, as the simulators do; the emulator's time is the clock's.

    Those of a joint's second servo, which a real arm's mechanics hold together with the first, are left to themselves on the bench.
    """
    over = threading.Event()

    def write() -> None:
        begin = time.monotonic()
        with log.open("w", buffering=1) as file:
            while not over.wait(0.005):
                with bus.lock:
                    shafts = [bus.servos[id].shaft * 2 * np.pi / 4096 for id in ids]
                file.write(f"{time.time_ns()} {time.monotonic() - begin:.4f} {' '.join(f'{shaft:.6f}' for shaft in shafts)}\n")

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    yield
    over.set()
    thread.join()


def _trail(log: Path) -> NDArray[np.float64]:
    """(T, 2 + J) all whole lines."""
    return np.array([[float(word) for word in line.split()] for line in log.read_text().splitlines()[:-1]])


def _moves(log: Path) -> bool:
    """Whether the first joint moved in the simulator's last tenth of a second."""
    trail = _trail(log)
    return float(np.ptp(trail[trail[:, 1] > trail[-1, 1] - 0.1, 2])) > 0.01


def swept(log: Path, since_ns: int) -> float:
    """How far the first joint was moved since `since_ns` (wall time), rad."""
    trail = _trail(log)
    trail = trail[trail[:, 0] > since_ns]
    return float(np.ptp(trail[:, 2])) if len(trail) else 0.0
