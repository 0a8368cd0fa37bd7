"""A recogniser as a required guard of the simulated arm: it holds before a frame is judged, above its limit, when frames stop, and dead."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray

from robot_bridge.nodes.stamps import to_ns
from tests.end_to_end.driver import Driver, arm_node, assert_at_rest_from, value
from tests.end_to_end.test_e_stop import BRAKING_S
from tests.robot_bridge.auxiliary.cameras import Camera
from tests.robot_bridge.auxiliary.fakes import HERE, SIDE, small_bundle
from tests.ros_graph import Graph, NodeProcess

GUARD = "dark_guard"


class Film(Camera):
    """A camera at 20 Hz whose picture can be changed, and which can be stopped."""

    level = 200
    running = True

    @contextmanager
    def shown(self) -> Iterator[None]:
        def show() -> None:
            while not over.wait(0.05):
                if self.running:
                    self.show(np.full((SIDE, SIDE, 3), self.level, np.uint8))

        over = threading.Event()
        thread = threading.Thread(target=show, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _guard(graph: Graph, bundle: Path) -> NodeProcess:
    given = {"method": f"{HERE}:BRIGHTNESS", "bundle": bundle, "hold_on": "dark_part", "hold_above": 0.5, "max_age_s": 0.8}
    arguments = [word for name, given_value in given.items() for word in ("-p", f"{name}:={given_value}")]
    return graph.process("robot_bridge.nodes.auxiliary_node", "--ros-args", "-r", f"__node:={GUARD}", *arguments)


def _held_because(status: DiagnosticArray) -> str | None:
    return json.loads(value(status, "holds")).get(GUARD)


def _wait_held(driver: Driver, why: str) -> int:
    """The stamp of the first coming status that says the arm is held by the guard, and why."""
    message = driver.statuses.wait(
        lambda m: value(m, "state") == "holding" and why in (_held_because(m) or ""),
        after=len(driver.statuses.messages) - 1,
        timeout_s=20,
    )
    return to_ns(message.header.stamp)


def _wait_free(driver: Driver) -> None:
    """Returns once the guard's process has started and judged a frame."""
    driver.statuses.wait(lambda m: value(m, "holds") == "{}", after=len(driver.statuses.messages), timeout_s=90)


def test_the_arm_is_held_by_a_required_recogniser_and_when_it_is_dead(graph: Graph, tmp_path: Path) -> None:
    bundle = small_bundle(tmp_path / "bundle")
    film = Film(graph)
    with arm_node(required_guards=[GUARD]), film.shown():
        driver = Driver(graph)
        _wait_held(driver, "required guard not heard")
        guard = _guard(graph, bundle)
        _wait_free(driver)
        driver.take()
        driver.start()
        driver.wait_moving()

        film.level = 20
        _wait_held(driver, "dark_part 1 above 0.5")
        film.level = 200
        driver.wait_moving()  # after a guard's hold motion may go on by itself

        film.running = False
        _wait_held(driver, "s old")
        film.running = True
        driver.wait_moving()

        guard.kill()
        killed_ns = time.time_ns()
        held_ns = _wait_held(driver, " s")  # the age of the judged frame, or the silence of 1 s
        assert held_ns - killed_ns < 1.5e9
        _wait_held(driver, "required guard silent for more than 1 s")
        driver.applied.wait(after=len(driver.applied.messages) + 100)
        assert_at_rest_from(driver, held_ns, within_s=BRAKING_S + 0.5)
        driver.stop()
