"""Progress of a run: a bar with updates/s and time left on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich import progress as bars
from rich.console import Console

_REFRESH_S = 0.2
_PLAIN_LINE_S = 20.0


class Progress:
    """Shows how far a run is. On stderr, so that figures on stdout stay parseable."""

    def __init__(self, total: int, start: int, *, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._total = total
        self._start = start
        self._begun = self._shown = time.monotonic()
        self._bar: bars.Progress | None = None
        if self._console.is_terminal:
            columns = (
                bars.TextColumn("training"),
                bars.BarColumn(),
                bars.MofNCompleteColumn(),
                bars.TextColumn("{task.fields[rate]}"),
                bars.TimeRemainingColumn(),
                bars.TextColumn("{task.fields[figures]}"),
            )
            self._bar = bars.Progress(*columns, console=self._console)
            self._task = self._bar.add_task("training", total=total, completed=start, rate="", figures="")

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, step: int, metrics: Mapping[str, float]) -> None:
        """`step` updates are done; `metrics` are the last figures."""
        now = time.monotonic()
        last = step == self._total
        if not last and now - self._shown < (_REFRESH_S if self._bar else _PLAIN_LINE_S):
            return
        self._shown = now
        rate = (step - self._start) / max(now - self._begun, 1e-9)
        shown = [name for name in ("eval/success_rate", "eval/return_mean", "loss/critic", "loss/actor", "loss/bc") if name in metrics]
        figures = "  ".join(f"{name} {metrics[name]:.3g}" for name in shown)
        if self._bar is not None:
            self._bar.update(self._task, completed=step, rate=f"{rate:.1f} updates/s", figures=figures)
        else:
            left = (self._total - step) / max(rate, 1e-9)
            self._console.print(
                f"{step}/{self._total}  {rate:.1f} updates/s  {left:.0f} s left  {figures}", highlight=False, soft_wrap=True
            )
