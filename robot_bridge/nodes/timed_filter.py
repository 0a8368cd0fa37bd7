"""TimedFilter: the command filter, with the time of every step."""

from __future__ import annotations

import time

from robot_bridge.arms.base import ArmState
from robot_bridge.control.filter import CommandFilter, FilterOutput
from robot_bridge.nodes.latency import Latency


class TimedFilter(CommandFilter):
    """Adds the duration of every step to `latency` as `filter`."""

    latency: Latency

    def step(self, measured: ArmState, now_ns: int, source_ns: int) -> FilterOutput:
        """See `CommandFilter.step`."""
        start = time.perf_counter()
        output = super().step(measured, now_ns, source_ns)
        self.latency.add("filter", time.perf_counter() - start)
        return output
