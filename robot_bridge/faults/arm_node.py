"""An arm node whose driver can be spoilt, and which tells what reaches its control loop: `faults/inject` (request), `faults/marks`.

`python -m robot_bridge.faults.arm_node --ros-args -p ...`, with the parameters of the arm node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from std_msgs.msg import String

from robot_bridge.control.command import JointCommand, Refusal
from robot_bridge.control.holds import GuardReport
from robot_bridge.faults.spoilt_arm import SpoiltArm
from robot_bridge.faults.trace import Happening, Mark
from robot_bridge.nodes.arm_node import ArmNode
from robot_bridge.nodes.json_requests import JsonServer, RequestError
from robot_bridge.nodes.qos import STREAM, advertise
from robot_bridge.nodes.spin import run

MARKS = "faults/marks"
INJECT = "faults/inject"


class FaultyArmNode(ArmNode):
    """See the module; nothing else than in `ArmNode` comes between commands and arm."""

    def __init__(self) -> None:
        super().__init__()
        self._marks = advertise(self, String, MARKS, STREAM)
        self._spoilt = SpoiltArm(self.arm, self._mark)
        self._hear()
        self._inject = JsonServer(self, INJECT, self._spoil)

    def _hear(self) -> None:
        receive, guard, e_stop = self.loop.receive, self.loop.guard, self.loop.e_stop

        def received(command: JointCommand) -> Refusal | None:
            refusal = receive(command)
            event: Happening = "taken" if refusal is None else "denied" if refusal.reason == "no_authority" else "refused"
            self._mark(event, "" if refusal is None else refusal.reason)
            return refusal

        def guarded(report: GuardReport) -> None:
            guard(report)
            self._mark("guard_hold" if report.hold else "guard", report.name)

        def stopped(pressed: bool, sender: str) -> None:
            e_stop(pressed, sender)
            if pressed:
                self._mark("e_stop", sender)

        self.loop.receive, self.loop.guard, self.loop.e_stop = received, guarded, stopped  # type: ignore[method-assign]

    def _mark(self, event: Happening, detail: str = "") -> None:
        self._marks.publish(String(data=Mark(stamp_ns=self._time.source_ns(), event=event, detail=detail).to_json()))

    def _spoil(self, request: dict[str, Any], reply: Callable[[Mapping[str, Any]], None]) -> None:
        now_ns = self._time.source_ns()
        try:
            self._spoilt.spoil(str(request.get("mode")))
        except ValueError as error:
            raise RequestError(str(error)) from error
        reply({"ok": True, "stamp_ns": now_ns})


def main() -> int:
    """Entry point."""
    return run(FaultyArmNode)


if __name__ == "__main__":
    from robot_bridge.ros_environment import prepare_ros_environment

    prepare_ros_environment()
    raise SystemExit(main())
