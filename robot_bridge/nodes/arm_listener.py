"""What an arm node hears: guards, speed scale, authority and operators. Callbacks hand over to the control loop at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from std_msgs.msg import Float32
from std_srvs.srv import Trigger

from robot_bridge.control.holds import GuardReport
from robot_bridge.control.loop import ControlLoop
from robot_bridge.nodes.json_requests import JsonServer, RequestError
from robot_bridge.nodes.qos import subscribe_to_any

Reply = Callable[[Mapping[str, Any]], None]


class ArmListener:
    """Subscriptions, services and requests of the arm node, but for `arm/command` and `/e_stop`.

    Args:
        node: the arm node.
        loop: its control loop.
        changed: called after something that `arm/status` should tell at once.
    """

    def __init__(self, node: Node, loop: ControlLoop, changed: Callable[[], None]) -> None:
        self._loop = loop
        self._changed = changed
        self._logger = node.get_logger()
        subscribe_to_any(node, DiagnosticArray, "safety/holds", self._guards)
        subscribe_to_any(node, Float32, "safety/speed_scale", self._speed)
        node.create_service(Trigger, "arm/rearm", self._rearm)
        self._servers = [JsonServer(node, "arm/authority", self._ask_authority), JsonServer(node, "arm/clear_hold", self._clear_hold)]

    def _guards(self, message: DiagnosticArray, info: dict[str, Any]) -> None:
        for status in message.status:
            self._loop.guard(guard_report(status))

    def _speed(self, message: Float32, info: dict[str, Any]) -> None:
        self._loop.speed(message.data, bytes(info["publisher_gid"]["data"]).hex())

    def _rearm(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        refused = self._loop.rearm()
        response.success = refused is None
        response.message = refused or "armed; a sender must take authority anew"
        self._logger.info(f"rearm: {response.message}")
        self._changed()
        return response

    def _ask_authority(self, request: dict[str, Any], reply: Reply) -> None:
        operation, source, sender = request.get("op"), str(request.get("source")), request.get("sender")
        if operation not in ("take", "release"):
            raise RequestError(f"op {operation!r}, valid: take, release")
        refused = self._loop.take(source, sender) if operation == "take" else self._loop.release(source, sender)
        if refused:
            raise RequestError(refused)
        reply({"ok": True})
        self._changed()

    def _clear_hold(self, request: dict[str, Any], reply: Reply) -> None:
        refused = self._loop.clear_hold(str(request.get("name")))
        if refused:
            raise RequestError(refused)
        reply({"ok": True})
        self._changed()


def guard_report(status: DiagnosticStatus) -> GuardReport:
    """A guard's entry on `safety/holds`: ERROR holds; what cannot be read holds too.

    Its values may hold `judged_stamp` (nanoseconds, source time of the newest frame judged) and `max_age` (seconds).
    """
    values = {pair.key: pair.value for pair in status.values}
    hold, message = status.level >= DiagnosticStatus.ERROR, status.message
    try:
        judged = int(values["judged_stamp"]) if "judged_stamp" in values else None
        max_age_s = float(values.get("max_age", 1.0))
        if not (math.isfinite(max_age_s) and max_age_s > 0):
            raise ValueError(f"max_age {max_age_s}")
    except ValueError as error:
        return GuardReport(name=status.name, hold=True, message=f"report cannot be read: {error}")
    return GuardReport(name=status.name, hold=hold, message=message, judged_stamp_ns=judged, max_age_s=max_age_s)
