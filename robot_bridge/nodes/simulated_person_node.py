"""A person who walks up to the simulated arm and away again, along way points: for demonstrations and tests of what guards the arm.

The body is that of `sim_envs.sensors.humanoid`. It says where it is on `sim/person`, how far that is from the arm on `sim/human_distance`,
stamped on the arm's clock. It says the same on `human/distance`, as a sensor without error would; or, with `radar`, it is the radar that
hears the walk, with noise and fading (`radar/geometry`, `radar/background`, `radar/echo`). The arm that the radar hears stands still.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import PoseArray
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float32

from robot_bridge.nodes.heard_arm import HeardArm
from robot_bridge.nodes.messages import joint_state
from robot_bridge.nodes.person_messages import keypoint_poses
from robot_bridge.nodes.qos import SENSOR, STREAM, advertise
from robot_bridge.nodes.simulated_radar import SimulatedRadar
from robot_bridge.nodes.spin import Failure, NodeError, run
from sim_envs.sensors.walker import Walker

_PATH = "0 2.8 0.4; 3 2.8 0.4; 5 1.05 0.1; 8 1.05 0.1; 10.5 2.8 0.4; 12 2.8 0.4"


class SimulatedPersonNode(Node):
    """Parameters: `path`, "seconds x y; ...", way points in m in frame base, seconds counted from when the arm is heard first; `repeat`,
    begin anew after the last; `radar`, echoes instead of distances; `frames`, of their windows; `seed`, of their noise; `rate_hz`;
    `arm_radius_m`, of the arm's links.

    Args:
        options: arguments of `rclpy.node.Node`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("simulated_person", **options)
        path = str(self.declare_parameter("path", _PATH).value)
        repeat = bool(self.declare_parameter("repeat", True).value)
        radar = bool(self.declare_parameter("radar", False).value)
        rate_hz = float(self.declare_parameter("rate_hz", 20.0).value or 0.0)
        frames = int(self.declare_parameter("frames", 4).value or 0)
        seed = int(self.declare_parameter("seed", 0).value or 0)
        self._radius_m = float(self.declare_parameter("arm_radius_m", 0.1).value or 0.0)
        if not 0.0 < rate_hz <= 100.0:
            raise NodeError(f"parameter rate_hz: {rate_hz}, valid: above 0, at most 100")
        try:
            self.walker = Walker([list(map(float, point.split())) for point in path.split(";") if point.strip()], repeat=repeat)
        except ValueError as error:
            raise NodeError(f"parameter path: {error}") from error
        if frames < 1:
            raise NodeError(f"parameter frames: {frames}, valid: 1 or more")
        self.failure = Failure()
        self.begin_ns: int | None = None
        """Source time of second 0 of the path."""
        self._arm = HeardArm(self, self.failure)
        self._person = advertise(self, PoseArray, "sim/person", STREAM)
        self._truth = advertise(self, JointState, "sim/human_distance", STREAM)
        self._distance = advertise(self, Float32, "human/distance", SENSOR) if not radar else None
        self._radar = SimulatedRadar(self, self.walker, frames=frames, repeat=repeat, seed=seed) if radar else None
        self.create_timer(1.0 / rate_hz, self._show)
        self.get_logger().info(f"simulated person ready: up to {self.walker.speed_mps:.1f} m/s")

    def _show(self) -> None:
        shape, joints = self._arm.shape, self._arm.positions
        if shape is None or joints is None:
            return
        now_ns = self._arm.now_ns()
        if self.begin_ns is None:
            self.begin_ns = now_ns
        seconds = (now_ns - self.begin_ns) * 1e-9
        distance = shape.distance(joints, self.walker.capsules(seconds), self.walker.radii, thickness=self._radius_m)
        self._person.publish(keypoint_poses(self.walker.keypoints([seconds])[0], frame=self._arm.frame, stamp_ns=now_ns))
        self._truth.publish(joint_state(["distance"], np.array([distance]), np.empty(0), now_ns))
        if self._distance is not None:
            self._distance.publish(Float32(data=distance))
        if self._radar is not None:
            self._radar.show(seconds)


def main() -> int:
    """Entry point of `simulated_person_node`."""
    return run(SimulatedPersonNode)


if __name__ == "__main__":
    raise SystemExit(main())
