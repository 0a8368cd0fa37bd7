"""The human radar: a lifecycle node that says from radar echoes where a person is, what they do, and how far from the arm, in the dark too.

It configures and activates itself unless `autostart` is false. Configuring loads the bundle of `rfmamba`; once active it waits for the
radar's geometry, which must be the one that the bundle was trained for, and for the echo of the empty cell: on `radar/background`, or asked
for on its request (op `empty`, `windows`) while nobody is there. Without them, or for a window that is too old, it says no distance, so
that a guard which needs one holds. It does not start for a guard that takes the bundle to be better than it is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseArray
from numpy.typing import NDArray
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from std_msgs.msg import Float32, Float32MultiArray, String

from rl_core.bundle import Bundle
from rl_core.errors import ArmstackError
from robot_bridge.auxiliary.monitoring.rfmamba.interface import HumanRadar, RadarGeometry, echo_of
from robot_bridge.nodes.heard_arm import HeardArm
from robot_bridge.nodes.human_radar_worker import HumanRadarWorker, Seen
from robot_bridge.nodes.json_requests import JsonServer, RequestError
from robot_bridge.nodes.person_messages import keypoint_poses
from robot_bridge.nodes.qos import LATCHED, SENSOR, STREAM, advertise, subscribe
from robot_bridge.nodes.radar_messages import numbers_of
from robot_bridge.nodes.spin import NodeError, run
from robot_bridge.nodes.watching_node import WatchingNode
from robot_bridge.separation.radar_error import require_error

_MOST_WINDOWS = 1000


class HumanRadarNode(WatchingNode[HumanRadarWorker]):
    """Parameters besides a `WatchingNode`'s: `error_m`, what the guard that hears it was given, no default; `max_age_s`, no distance is
    about an earlier instant than so long ago; `arm_radius_m` and `body_radius_m`, of the arm's links and of a person about their
    keypoints, which a distance is less by.

    Args:
        options: arguments of `LifecycleNode`.
    """

    hears_radar = True

    def __init__(self, **options: Any) -> None:
        given = {"method": "rfmamba", "error_m": math.nan, "max_age_s": 0.4, "arm_radius_m": 0.1, "body_radius_m": 0.15}
        super().__init__("human_radar", given, **options)
        self._radar: HumanRadar | None = None
        self._background: NDArray[np.complex64] | None = None
        self._asked_ns = 0
        """Wall time at which the empty cell was asked for last; an echo of it from before is out of date."""
        self._arm = HeardArm(self, self.failure)
        self._keypoints = advertise(self, PoseArray, "human/keypoints", STREAM)
        self._activity = advertise(self, String, "human/activity", STREAM)
        self._distance = advertise(self, Float32, "human/distance", SENSOR)
        self._server = JsonServer(self, "~", self._asked)
        self._start_itself()

    # -- lifecycle ------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        for name in ("max_age_s", "arm_radius_m", "body_radius_m"):
            if not 0 <= float(self._given[name] or 0.0) < 10:
                raise ArmstackError(f"parameter {name}: {self._given[name]}, valid: 0 to 10")

    def _use(self, loaded: Any, bundle: Bundle) -> None:
        if not isinstance(loaded, HumanRadar):
            raise ArmstackError(f"{type(loaded).__name__} sees no people by radar, valid: a method that does, such as rfmamba")
        require_error(loaded, float(self._given["error_m"]), "parameter error_m")
        self._radar = loaded

    def _forget(self) -> None:
        self._radar = None

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Waits for the radar's geometry, then works."""
        self._inputs.append(subscribe(self, String, "radar/geometry", self._geometry_came, LATCHED))
        self._inputs.append(subscribe(self, Float32MultiArray, "radar/background", self._background_came, LATCHED, with_info=True))
        self._inputs.append(subscribe(self, Float32MultiArray, "radar/echo", self._echo_came, SENSOR, with_info=True))
        return super().on_activate(state)

    # -- what comes -----------------------------------------------------------------------------------------------------

    def _geometry_came(self, message: String) -> None:
        assert self._radar is not None
        try:
            self._radar.geometry.accepts(RadarGeometry.from_json(message.data))
        except ArmstackError as error:
            self._failed(NodeError(f"radar/geometry: {error}\nUse a bundle trained for this radar; no distance is said."))
            return
        if self._worker is None:
            worker = HumanRadarWorker(
                self._radar,
                seen=self._seen,
                failed=self._failed,
                now_ns=self._arm.now_ns,
                max_age_s=float(self._given["max_age_s"] or 0.0),
                warmed=self._ready,
                refused=self._refused,
            )
            worker.background = self._background
            self._begin(worker)

    def _background_came(self, message: Float32MultiArray, info: dict[str, Any]) -> None:
        assert self._radar is not None
        if int(info["source_timestamp"]) < self._asked_ns:
            return  # it is told again to everybody who begins to listen
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

        def given_up(why: str) -> None:
            reply({"ok": False, "error": f"{why}; ask again, with nobody there"})

        # Whoever asks says that the old one is wrong; without a new one no distance is said.
        self._background, self._asked_ns = None, time.time_ns()
        worker.gather_background(windows, gathered, given_up)

    # -- what goes ------------------------------------------------------------------------------------------------------

    def _ready(self) -> None:
        self.get_logger().info("human radar ready")

    def _refused(self, why: str) -> None:
        self.get_logger().warning(f"no distance: {why}", throttle_duration_sec=5.0)

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

    def _tells(self) -> Mapping[str, Any]:
        return {} if self._worker is None else {"unusable_because": self._worker.unusable}


def main() -> int:
    """Entry point of `human_radar_node`."""
    return run(HumanRadarNode)


if __name__ == "__main__":
    raise SystemExit(main())
