"""Holds: guards that may make the arm wait."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SILENT_NS = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class GuardReport:
    """One entry of `safety/holds`.

    Attributes:
        name: the guard.
        hold: level ERROR: the arm must wait.
        message: the guard's own words.
        judged_stamp_ns: source time of the newest frame judged; None for a guard that judges no frames.
        max_age_s: how old that frame may become.
    """

    name: str
    hold: bool
    message: str = ""
    judged_stamp_ns: int | None = None
    max_age_s: float = 1.0


class Holds:
    """Which guards make the arm wait, and why.

    A guard that said hold keeps it until it says OK or an operator clears it by name, however silent it is. A required
    guard also holds while it is silent (1 s), was never heard, or its judged frame is too old.
    """

    def __init__(self, required: Iterable[str] = ()) -> None:
        self.required = tuple(required)
        self._reports: dict[str, GuardReport] = {}
        self._heard_ns: dict[str, int] = {}

    def receive(self, report: GuardReport, now_ns: int) -> None:
        """Takes a guard's newest word at monotonic time `now_ns`."""
        self._reports[report.name] = report
        self._heard_ns[report.name] = now_ns

    def active(self, now_ns: int, source_ns: int) -> dict[str, str]:
        """Name -> reason of every hold at monotonic time `now_ns` and stamp time `source_ns`."""
        holds = {name: report.message or "hold" for name, report in self._reports.items() if report.hold}
        for name in self.required:
            if name not in holds and (reason := self._missing(name, now_ns, source_ns)):
                holds[name] = reason
        return holds

    def clear(self, name: str, now_ns: int) -> str | None:
        """An operator ends a silent guard's hold; returns None when done, else why not."""
        report = self._reports.get(name)
        if report is None or not report.hold:
            return f"no hold named {name!r}; held by guards: {sorted(n for n, r in self._reports.items() if r.hold)}"
        if now_ns - self._heard_ns[name] <= SILENT_NS:
            return f"guard {name!r} is alive and says hold: {report.message}"
        del self._reports[name]
        return None

    def _missing(self, name: str, now_ns: int, source_ns: int) -> str | None:
        report = self._reports.get(name)
        if report is None:
            return "required guard not heard"
        if now_ns - self._heard_ns[name] > SILENT_NS:
            return "required guard silent for more than 1 s"
        if report.judged_stamp_ns is not None:
            age_s = (source_ns - report.judged_stamp_ns) / 1e9
            if not abs(age_s) <= report.max_age_s:
                return f"judged frame is {age_s:.3f} s old, valid: within {report.max_age_s} s"
        return None
