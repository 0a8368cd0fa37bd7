"""A camera of the simulated world: draws the arm node's newest positions, in a process of its own, on a thread of its own.

A picture carries the stamp of the positions it shows. A picture that took so long that it is old when it is done is published all the
same, counted as stale and told on `diagnostics`; who uses it judges its stamp. The arm never waits for a camera.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from robot_bridge.nodes.camera_publisher import CameraPublisher
from robot_bridge.nodes.latency import Latency
from robot_bridge.nodes.qos import EVENTS, SENSOR, STREAM, subscribe
from robot_bridge.nodes.spin import Failure, NodeError, run
from robot_bridge.nodes.stamps import to_ns


class Drawing(Protocol):
    """Draws a world it knows only the positions of."""

    def reset(self, seed: int) -> None:
        """An episode begins: sizes of objects and the place of a goal follow from its seed."""
        ...

    def render(self, positions: NDArray[np.float64]) -> NDArray[np.uint8]:
        """(H, W, 3) RGB, first row on top."""
        ...


MakeDrawing = Callable[[str, int, int, str], Drawing]
"""(task, width, height, camera) -> Drawing; called on the drawing thread, which graphics contexts are bound to."""


class CameraNode(Node):
    """Parameters: `camera` (`front`, `wrist`, or `station` of the task `sort`), `task`, `width`, `height`, `rate_hz`, `max_age_s` (an older
    picture is stale), `feed` (what lies at the station: known, light, damaged, foreign).

    Args:
        make_drawing: makes what draws (tests put a blocking one here).
        options: further arguments of `rclpy.node.Node`.
    """

    def __init__(self, *, make_drawing: MakeDrawing | None = None, **options: Any) -> None:
        super().__init__("camera", **options)
        name = str(self.declare_parameter("camera", "front").value)
        task = str(self.declare_parameter("task", "lift").value)
        width, height = (int(self.declare_parameter(key, 128).value or 0) for key in ("width", "height"))
        feed = str(self.declare_parameter("feed", "known").value)
        rate_hz = float(self.declare_parameter("rate_hz", 30.0).value or 0.0)
        self._max_age_ns = int(float(self.declare_parameter("max_age_s", 0.1).value or 0.0) * 1e9)
        for key, value in (("width", width), ("height", height), ("rate_hz", rate_hz), ("max_age_s", self._max_age_ns)):
            if not value > 0:
                raise NodeError(f"parameter {key}: {value}, valid: above 0")
        self.failure = Failure()
        self._period_s = 1.0 / rate_hz
        self._latency = Latency()
        self._publisher = CameraPublisher(self, name, rate_hz=rate_hz, max_age_s=self._max_age_ns * 1e-9)
        self._newest: tuple[NDArray[np.float64], int] | None = None
        self._seed: int | None = None
        self._clock_ns: int | None = None
        self._changed = threading.Condition()
        self._closing = False
        subscribe(self, JointState, "sim/qpos", self._positions, SENSOR)
        subscribe(self, String, "episode", self._episode, EVENTS)
        subscribe(self, ClockMessage, "/clock", self._clock_came, STREAM)
        self.create_timer(1.0, self._publish_diagnostics)
        self._publisher.offer(height, width)
        arguments = (task, width, height, name)
        own = partial(_station, feed) if name == "station" else _WorldDrawing
        self._thread = threading.Thread(target=self._draw_all, args=(make_drawing or own, arguments), name="draw", daemon=True)
        self._thread.start()

    def _positions(self, message: JointState) -> None:
        with self._changed:
            self._newest = np.array(message.position), to_ns(message.header.stamp)
            self._changed.notify()

    def _episode(self, message: String) -> None:
        try:
            self._seed = int(json.loads(message.data)["seed"])
        except (ValueError, TypeError, KeyError) as error:
            self.get_logger().error(f"episode cannot be used: {error}", throttle_duration_sec=2.0)

    def _clock_came(self, message: ClockMessage) -> None:
        self._clock_ns = to_ns(message.clock)

    def _now_ns(self) -> int:
        return self._clock_ns if self._clock_ns is not None else time.time_ns()

    def _draw_all(self, make_drawing: MakeDrawing, arguments: tuple[str, int, int, str]) -> None:
        try:
            drawing, seed = make_drawing(*arguments), None
            self.get_logger().info(f"camera {arguments[-1]} ready")
            due = time.monotonic()
            while not self._closing:
                with self._changed:
                    if self._newest is None:
                        self._changed.wait(0.1)
                        continue
                    (positions, stamp_ns), self._newest = self._newest, None
                if self._seed is not None and self._seed != seed:
                    seed = self._seed
                    drawing.reset(seed)
                start = time.perf_counter()
                pixels = drawing.render(positions)
                self._latency.add("draw", time.perf_counter() - start)
                self._publish(pixels, stamp_ns)
                due = max(due + self._period_s, time.monotonic())
                time.sleep(max(0.0, due - time.monotonic()))
        except Exception as error:
            self.failure.report(NodeError(f"camera: {type(error).__name__}: {error}"))

    def _publish(self, pixels: NDArray[np.uint8], stamp_ns: int) -> None:
        stale = self._now_ns() - stamp_ns > self._max_age_ns
        self._publisher.publish(pixels, stamp_ns, stale=stale)
        if stale:
            self._publish_diagnostics()

    def _publish_diagnostics(self) -> None:
        figures = self._latency.milliseconds().items()
        self._publisher.report({f"{stage}_{key}_ms": value for stage, values in figures for key, value in values.items()})

    def close(self) -> None:
        """Ends the drawing thread."""
        self._closing = True
        self._thread.join(1.0)


class _WorldDrawing:
    """The arm's world as its renderer sees it, without its physics."""

    def __init__(self, task: str, width: int, height: int, camera: str) -> None:
        from sim_envs.arm.rendering import Renderer
        from sim_envs.arm.world import ArmWorld

        self._world = ArmWorld(task)
        self._renderer = Renderer(self._world, width, height, camera)

    def reset(self, seed: int) -> None:
        self._world.reset(seed)

    def render(self, positions: NDArray[np.float64]) -> NDArray[np.uint8]:
        return self._renderer.render(positions)


def _station(feed: str, task: str, width: int, height: int, camera: str) -> Drawing:
    from sim_envs.parts.station import Station

    if task != "sort" or width != height:
        raise ValueError(f"task {task!r}, {width} x {height} pixels; valid with a camera {camera!r}: task sort, a square")
    return Station(feed, width)  # type: ignore[arg-type]  # it names the feeds there are


def main() -> int:
    """Entry point of `camera_node`."""
    return run(CameraNode)


if __name__ == "__main__":
    raise SystemExit(main())
