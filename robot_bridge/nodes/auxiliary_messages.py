"""What the auxiliary node publishes, as messages: results, explanations, bytes, diagnostics."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from std_msgs.msg import MultiArrayDimension, MultiArrayLayout, String, UInt8MultiArray

from robot_bridge.auxiliary.payloads import to_json
from robot_bridge.nodes.auxiliary_worker import Judged
from robot_bridge.nodes.latency import Latency
from robot_bridge.nodes.messages import diagnostic
from robot_bridge.nodes.newest_worker import Counts
from robot_bridge.nodes.stamps import to_time


class Counted(Protocol):
    """A worker that counts its frames and times its stages."""

    latency: Latency
    counts: Counts


def result(judged: Judged, *, method: str, bundle: str, camera: str) -> String:
    """JSON of a judged frame: `stamp` (ns), `camera`, `method`, `bundle` (sha256), `scores`, `values`."""
    return String(data=to_json({**_origin(judged, method, bundle, camera), "scores": judged.scores, "values": judged.values}))


def explanation(judged: Judged, *, method: str, bundle: str, camera: str) -> String:
    """JSON of a judged frame's words: `stamp` (ns), `camera`, `method`, `bundle` (sha256), and what `Explainer.explain` gave."""
    return String(data=to_json({**_origin(judged, method, bundle, camera), **(judged.explanation or {})}))


def figures(name: str, worker: Counted, rates: Mapping[str, float], *, overload: str, **further: Any) -> DiagnosticArray:
    """`diagnostics`: rates, percentiles of every stage in ms, counts; level WARN where the method is overloaded."""
    stages = worker.latency.milliseconds().items()
    latency = {f"{stage}_{key}_ms": number for stage, numbers in stages for key, number in numbers.items()}
    level = DiagnosticStatus.WARN if overload else DiagnosticStatus.OK
    values = {**rates, **latency, **vars(worker.counts), **further}
    message = DiagnosticArray(status=[diagnostic(name, values, level=level, message=overload)])
    message.header.stamp = to_time(time.time_ns())
    return message


def byte_message(data: bytes) -> UInt8MultiArray:
    """`data` as one message."""
    layout = MultiArrayLayout(dim=[MultiArrayDimension(label="bytes", size=len(data), stride=len(data))])
    return UInt8MultiArray(layout=layout, data=data)


def _origin(judged: Judged, method: str, bundle: str, camera: str) -> dict[str, Any]:
    return {"stamp": judged.stamp_ns, "camera": camera, "method": method, "bundle": bundle}
