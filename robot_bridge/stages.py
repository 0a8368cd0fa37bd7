"""Stages: a progress bar for each part of a long job, one after the other."""

from __future__ import annotations

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from robot_bridge.commands.output import console


class Stages:
    """Called with what is being done, how much of it is done and how much there is; a bar ends with its part."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._what = ""

    def __enter__(self) -> Stages:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Shows it."""
        if self._bar is None or what != self._what:
            self._stop()
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar, self._what = Progress(*columns, console=console), what
            self._task = self._bar.add_task(what, total=total)
            self._bar.start()
        self._bar.update(self._task, completed=done)
        if done >= total:
            self._stop()

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
        self._bar = None
