"""What the auxiliary node publishes, as messages: results, holds, annotated images, diagnostics."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from std_msgs.msg import MultiArrayDimension, MultiArrayLayout, String, UInt8MultiArray

from robot_bridge.auxiliary.payloads import to_json
from robot_bridge.control.holds import GuardReport
from robot_bridge.nodes.auxiliary_worker import AuxiliaryWorker, Judged
from robot_bridge.nodes.messages import diagnostic
from robot_bridge.nodes.stamps import to_time


def result(judged: Judged, *, method: str, bundle: str, camera: str) -> String:
    """JSON of a judged frame: `stamp` (ns), `camera`, `method`, `bundle` (sha256), `scores`, `values`."""
    said = {
        "stamp": judged.stamp_ns,
        "camera": camera,
        "method": method,
        "bundle": bundle,
        "scores": judged.scores,
        "values": judged.values,
    }
    return String(data=to_json(said))


def holds(report: GuardReport) -> DiagnosticArray:
    """A guard's entry on `safety/holds`."""
    judged = {} if report.judged_stamp_ns is None else {"judged_stamp": report.judged_stamp_ns}
    level = DiagnosticStatus.ERROR if report.hold else DiagnosticStatus.OK
    return _stamped(diagnostic(report.name, {**judged, "max_age": report.max_age_s}, level=level, message=report.message))


def figures(name: str, worker: AuxiliaryWorker, rates: Mapping[str, float], *, overload: str, **further: Any) -> DiagnosticArray:
    """`diagnostics`: rates, percentiles of every stage in ms, counts; level WARN where the method is overloaded."""
    stages = worker.latency.milliseconds().items()
    latency = {f"{stage}_{key}_ms": number for stage, numbers in stages for key, number in numbers.items()}
    level = DiagnosticStatus.WARN if overload else DiagnosticStatus.OK
    return _stamped(diagnostic(name, {**rates, **latency, **vars(worker.counts), **further}, level=level, message=overload))


def byte_message(data: bytes) -> UInt8MultiArray:
    """`data` as one message."""
    layout = MultiArrayLayout(dim=[MultiArrayDimension(label="bytes", size=len(data), stride=len(data))])
    return UInt8MultiArray(layout=layout, data=data)


def _stamped(status: DiagnosticStatus) -> DiagnosticArray:
    message = DiagnosticArray(status=[status])
    message.header.stamp = to_time(time.time_ns())
    return message
