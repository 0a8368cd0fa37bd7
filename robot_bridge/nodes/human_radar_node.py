"""The human radar: a lifecycle node that says from radar echoes where a person is, what they do, and how far from the arm, in the dark too.

It configures and activates itself unless `autostart` is false. Configuring loads the bundle of `rfmamba`; once active it waits for the
radar's geometry, which must be the one that the bundle was trained for, and for the echo of the empty cell: on `radar/background`, or asked
for on its request (op `empty`, `windows`) while nobody is there. Without them, or for a window that is too old, it says no distance, so
that a guard which needs one holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseArray
from numpy.typing import NDArray
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_msgs.msg import Float32, Float32MultiArray, String

from rl_core.bundle import Bundle, bundle_sha256
from rl_core.errors import ArmstackError
from robot_bridge.auxiliary.monitoring.rfmamba.interface import HumanRadar, RadarGeometry, echo_of
from robot_bridge.auxiliary.registry import find_method, load_auxiliary
from robot_bridge.nodes.auxiliary_messages import figures
from robot_bridge.nodes.heard_arm import HeardArm
from robot_bridge.nodes.human_radar_worker import HumanRadarWorker, Seen
from robot_bridge.nodes.json_requests import JsonServer, RequestError
from robot_bridge.nodes.newest_worker import Load
from robot_bridge.nodes.person_messages import keypoint_poses
from robot_bridge.nodes.qos import LATCHED, SENSOR, STREAM, advertise, subscribe
from robot_bridge.nodes.radar_messages import numbers_of
from robot_bridge.nodes.spin import Failure, NodeError, run

_OK, _FAILED = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
_MOST_WINDOWS = 1000


class HumanRadarNode(LifecycleNode):
    """Parameters: `bundle`, folder of the bundle; `method`, name in the registry or `module:ROW`; `max_age_s`, no distance is about an
    earlier instant than so long ago; `arm_radius_m` and `body_radius_m`, of the arm's links and of a person about their keypoints, which a
    distance is less by; `threads` of torch; `autostart`.

    Args:
        options: arguments of `LifecycleNode`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("human_radar", **options)
        given: dict[str, Any] = {"method": "rfmamba", "bundle": "", "threads": 1}
        given |= {"max_age_s": 0.4, "arm_radius_m": 0.1, "body_radius_m": 0.15}
        self._given = {name: self.declare_parameter(name, default).value for name, default in given.items()}
        autostart = bool(self.declare_parameter("autostart", True).value)
        self.failure = Failure()
        self._error: NodeError | None = None
        self._radar: HumanRadar | None = None
        self._sha256 = ""
        self._worker: HumanRadarWorker | None = None
        self._background: NDArray[np.complex64] | None = None
        self._load = Load(time.monotonic())
        self._inputs: list[Any] = []
        self._arm = HeardArm(self, self.failure)
        self._keypoints = advertise(self, PoseArray, "human/keypoints", STREAM)
        self._activity = advertise(self, String, "human/activity", STREAM)
        self._distance = advertise(self, Float32, "human/distance", SENSOR)
        self._diagnostics = advertise(self, DiagnosticArray, "diagnostics", STREAM)
        self._server = JsonServer(self, "~", self._asked)
        self.create_timer(1.0, self._publish_diagnostics)
        if autostart and (self.trigger_configure() != _OK or self.trigger_activate() != _OK):
            raise self._error or NodeError("the human radar could not be activated")

    # -- lifecycle ------------------------------------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Loads the bundle."""
        method, folder = str(self._given["method"]), str(self._given["bundle"])
        try:
            for name in ("max_age_s", "arm_radius_m", "body_radius_m"):
                if not 0 <= float(self._given[name] or 0.0) < 10:
                    raise ArmstackError(f"parameter {name}: {self._given[name]}, valid: 0 to 10")
            row = find_method(method)
            if not folder:
                raise ArmstackError(f"parameter bundle is empty; give the folder that `armstack aux train {row.name}` wrote")
            import torch

            torch.set_num_threads(int(self._given["threads"] or 1))
            radar = load_auxiliary(row, Bundle.load(folder))
            if not isinstance(radar, HumanRadar):
                raise ArmstackError(f"{type(radar).__name__} sees no people by radar, valid: a method that does, such as rfmamba")
            self._radar, self._sha256 = radar, bundle_sha256(folder)
        except (ArmstackError, ValueError, OSError, ImportError) as error:
            self._error = NodeError(f"method {method!r}, bundle {folder!r}: {error}")
            self.get_logger().error(str(self._error))
            return _FAILED
        self.get_logger().info(f"{row.name}: bundle {folder} loaded, sha256 {self._sha256[:12]}")
        return _OK

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Waits for the radar's geometry, then works."""
        self._inputs.append(subscribe(self, String, "radar/geometry", self._geometry_came, LATCHED))
        self._inputs.append(subscribe(self, Float32MultiArray, "radar/background", self._background_came, LATCHED))
        self._inputs.append(subscribe(self, Float32MultiArray, "radar/echo", self._echo_came, SENSOR, with_info=True))
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Judges no more and says no more; a guard that needs its distances holds."""
        self._end()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forgets the bundle."""
        self._radar = None
        return _OK

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Ends."""
        self._end()
        return _OK

    def close(self) -> None:
        """Ends the worker."""
        self._end()

    def _end(self) -> None:
        for subscription in self._inputs:
            self.destroy_subscription(subscription)
        self._inputs = []
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()

    # -- what comes -----------------------------------------------------------------------------------------------------

    def _geometry_came(self, message: String) -> None:
        assert self._radar is not None
        try:
            self._radar.geometry.accepts(RadarGeometry.from_json(message.data))
        except ArmstackError as error:
            self._failed(NodeError(f"radar/geometry: {error}\nUse a bundle trained for this radar; no distance is said."))
            return
        if self._worker is None:
            self._load = Load(time.monotonic())
            self._worker = HumanRadarWorker(
                self._radar,
                seen=self._seen,
                failed=self._failed,
                now_ns=self._arm.now_ns,
                max_age_s=float(self._given["max_age_s"] or 0.0),
                warmed=self._ready,
            )
            self._worker.background = self._background
            self._worker.start()

    def _background_came(self, message: Float32MultiArray) -> None:
        assert self._radar is not None
        geometry = self._radar.geometry
        try:
            self._background = echo_of(np.tile(numbers_of(message), (geometry.frames, 1, 1, 1, 1)), geometry)[0]
        except (ArmstackError, ValueError) as error:
            self.get_logger().error(f"radar/background cannot be used: {error}", throttle_duration_sec=2.0)
            return
        if self._worker is not None:
            self._worker.background = self._background

    def _echo_came(self, message: Float32MultiArray, info: dict[str, Any]) -> None:
        if self._worker is not None:
            self._worker.offer((message, self._arm.stamp_of(int(info["source_timestamp"]))))

    def _asked(self, request: dict[str, Any], reply: Callable[[Mapping[str, Any]], None]) -> None:
        worker, windows = self._worker, request.get("windows", 20)
        if request.get("op") != "empty":
            raise RequestError(f"op {request.get('op')!r}, valid: empty")
        if not isinstance(windows, int) or not 1 <= windows <= _MOST_WINDOWS:
            raise RequestError(f"windows {windows!r}, valid: 1 to {_MOST_WINDOWS}")
        if worker is None:
            raise RequestError("the node is not active, or still waits for radar/geometry")

        def gathered(background: NDArray[np.complex64]) -> None:
            self._background = background
            reply({"ok": True, "windows": windows})

        worker.gather_background(windows, gathered)

    # -- what goes ------------------------------------------------------------------------------------------------------

    def _ready(self) -> None:
        self.get_logger().info("human radar ready")

    def _seen(self, seen: Seen) -> None:
        person = seen.person
        self._keypoints.publish(keypoint_poses(person.joints, frame=self._arm.frame, stamp_ns=seen.stamp_ns))
        self._activity.publish(String(data=max(person.activity, key=lambda name: person.activity[name])))
        shape, positions = self._arm.shape, self._arm.positions
        if shape is None or positions is None:
            self.get_logger().warning("no distance: the arm is not heard", throttle_duration_sec=5.0)
            return
        points = np.repeat(person.joints[:, None].astype(np.float64), 2, axis=1)
        radii = np.full(len(points), float(self._given["body_radius_m"] or 0.0))
        distance = shape.distance(positions, points, radii, thickness=float(self._given["arm_radius_m"] or 0.0))
        self._distance.publish(Float32(data=distance))

    def _failed(self, error: Exception) -> None:
        self.failure.report(error if isinstance(error, NodeError) else NodeError(f"human radar: {type(error).__name__}: {error}"))

    def _publish_diagnostics(self) -> None:
        worker = self._worker
        if worker is None:
            return
        rates, overload = self._load.report(time.monotonic(), worker.counts)
        values = {"unusable_because": worker.unusable, "bundle": self._sha256}
        self._diagnostics.publish(figures(self.get_name(), worker, rates, overload=overload, **values))
        if overload:
            self.get_logger().warning(overload, throttle_duration_sec=10.0)


def main() -> int:
    """Entry point of `human_radar_node`."""
    return run(HumanRadarNode)


if __name__ == "__main__":
    raise SystemExit(main())
