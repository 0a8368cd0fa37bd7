"""The separation guard: slows the arm as a person comes near, and holds it before they are within the limit.

It hears `human/distance` from one sensor, and of the arm `arm/contract` and `joint_states`. On `safety/speed_scale` it says how much of the
arm's speed is allowed, and on `safety/holds`, under its own name, whether the arm must hold: at every distance, and twenty times a second.
It holds until it has heard all of them, and when one of them cannot be used or is too old. The rule is `robot_bridge.control.separation`.
"""

from __future__ import annotations

import math
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from std_msgs.msg import Float32

from robot_bridge.control.arm_shape import ArmShape
from robot_bridge.control.separation import BrakingArm, Judgement, Separation, SeparationError, SeparationSettings
from robot_bridge.nodes.arm_offer import ArmOffer
from robot_bridge.nodes.guard_message import guard_message
from robot_bridge.nodes.heard_arm import HeardArm
from robot_bridge.nodes.messages import diagnostic
from robot_bridge.nodes.qos import LATCHED, SENSOR, STREAM, advertise, subscribe
from robot_bridge.nodes.spin import Failure, NodeError, run
from robot_bridge.nodes.stamps import to_time

_SAY_S = 0.05


class SeparationNode(Node):
    """Parameters are the fields of `SeparationSettings`, of which `error_m` and `latency_s`, the sensor's, have no default.

    Args:
        options: arguments of `rclpy.node.Node`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("separation", **options)
        given = {"limit_m": 0.5, "error_m": math.nan, "latency_s": math.nan}
        given |= {name: getattr(SeparationSettings, name) for name in ("max_age_s", "person_mps", "hysteresis_m", "restart_delay_s")}
        values = {name: float(self.declare_parameter(name, default).value or 0.0) for name, default in given.items()}
        try:
            self._rule = Separation(SeparationSettings(**values))
        except SeparationError as error:
            raise NodeError(f"parameter {error}") from error
        self.failure = Failure()
        self._judgement: Judgement | None = None
        self._heard = 0
        self._holds = advertise(self, DiagnosticArray, "safety/holds", LATCHED)  # the arm node hears it in both of its ways
        self._scale = advertise(self, Float32, "safety/speed_scale", LATCHED)
        self._diagnostics = advertise(self, DiagnosticArray, "diagnostics", STREAM)
        self._arm = HeardArm(self, self.failure, met=self._met, moved=self._rule.hear_arm)
        subscribe(self, Float32, "human/distance", self._distance_came, SENSOR, with_info=True)
        self.create_timer(_SAY_S, self._say)
        self.create_timer(1.0, self._publish_diagnostics)
        self.get_logger().info(f"separation ready: nothing moves within {values['limit_m']:g} m of a person")

    def _met(self, offer: ArmOffer, shape: ArmShape) -> None:
        self._rule.meet(BrakingArm(offer.limits, shape, period_s=offer.control_period_s))

    def _distance_came(self, message: Float32, info: dict[str, Any]) -> None:
        sent_ns = int(info["source_timestamp"])
        sender = bytes(info["publisher_gid"]["data"]).hex()
        stamp_ns, now_ns = self._arm.stamp_of(sent_ns), self._arm.now_ns()
        self._rule.hear_distance(message.data, stamp_ns, sender=sender, sent_ns=sent_ns, now_ns=now_ns)
        self._heard += 1
        self._say()

    def _say(self) -> None:
        judgement = self._rule.judge(self._arm.now_ns())
        if self._judgement is None or bool(judgement.reason) != bool(self._judgement.reason):
            self.get_logger().info(f"hold: {judgement.reason}" if judgement.reason else "the arm may move")
        self._judgement = judgement
        self._holds.publish(guard_message(self._rule.report(self.get_name(), judgement)))
        self._scale.publish(Float32(data=judgement.scale))

    def _publish_diagnostics(self) -> None:
        judgement = self._judgement
        if judgement is None:
            return
        figures = {name: getattr(judgement, name) for name in ("distance_m", "trigger_m", "speed_mps", "scale")}
        level = DiagnosticStatus.WARN if judgement.reason else DiagnosticStatus.OK
        entry = diagnostic(self.get_name(), {**figures, "received": self._heard}, level=level, message=judgement.reason)
        message = DiagnosticArray(status=[entry])
        message.header.stamp = to_time(time.time_ns())
        self._diagnostics.publish(message)


def main() -> int:
    """Entry point of `separation_node`."""
    return run(SeparationNode)


if __name__ == "__main__":
    raise SystemExit(main())
