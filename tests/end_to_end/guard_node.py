"""A guard for tests: says OK on `safety/holds` at 5 Hz, or hold while its parameter `hold` is true."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node

from robot_bridge.nodes.messages import diagnostic
from robot_bridge.nodes.qos import STREAM, advertise
from robot_bridge.nodes.spin import run


class GuardNode(Node):
    def __init__(self) -> None:
        super().__init__("guard")
        hold = self.declare_parameter("hold", False)
        self._publisher = advertise(self, DiagnosticArray, "safety/holds", STREAM)
        self._level = DiagnosticStatus.ERROR if hold.value else DiagnosticStatus.OK
        self.create_timer(0.2, self._say)

    def _say(self) -> None:
        self._publisher.publish(DiagnosticArray(status=[diagnostic("camera_guard", {}, level=self._level, message="a person is near")]))


if __name__ == "__main__":
    raise SystemExit(run(GuardNode))
