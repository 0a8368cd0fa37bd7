"""A guard's word as a message; `arm_listener.guard_report` reads it."""

from __future__ import annotations

import time

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from robot_bridge.control.holds import GuardReport
from robot_bridge.nodes.messages import diagnostic
from robot_bridge.nodes.stamps import to_time


def guard_message(report: GuardReport) -> DiagnosticArray:
    """A guard's entry on `safety/holds`."""
    judged = {} if report.judged_stamp_ns is None else {"judged_stamp": report.judged_stamp_ns}
    level = DiagnosticStatus.ERROR if report.hold else DiagnosticStatus.OK
    entry = diagnostic(report.name, {**judged, "max_age": report.max_age_s}, level=level, message=report.message)
    message = DiagnosticArray(status=[entry])
    message.header.stamp = to_time(time.time_ns())
    return message
