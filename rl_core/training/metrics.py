"""Metrics of a run: `metrics.jsonl` and TensorBoard files. Files only: no network, no wait.

Names are `group/name` and the same in all methods: `loss/critic`, `loss/actor`, `eval/success_rate`, `time/updates_per_s`.
One line a step; a resumed run first drops the lines beyond its checkpoint, so no step is there twice.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_NAME = re.compile(r"[a-z0-9_]+/[A-Za-z0-9_]+")


class MetricsLog:
    """Writes one run's metrics.

    Args:
        folder: the run's folder.
        resume_from: keep lines up to this step and drop later ones; 0 starts anew.
    """

    def __init__(self, folder: str | Path, *, resume_from: int = 0) -> None:
        from torch.utils.tensorboard import SummaryWriter

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "metrics.jsonl"
        rows = [row for row in read_metrics(folder) if row["step"] <= resume_from] if resume_from else []
        part = self.file.with_suffix(".jsonl.part")
        part.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.replace(part, self.file)
        self._stream = open(self.file, "a", buffering=1)  # a line is on its way to the file as soon as it is complete
        self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=resume_from + 1, flush_secs=10)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """One line for `step`.

        Raises:
            ValueError: a name that is not `group/name`.
        """
        for name in values:
            if not _NAME.fullmatch(name):
                raise ValueError(f"metric name {name!r}, valid: group/name in lower case, e.g. loss/critic")
        self._stream.write(json.dumps({"step": step, **values}) + "\n")
        for name, value in values.items():
            self._board.add_scalar(name, value, step)

    def close(self) -> None:
        """Flushes and closes both files."""
        self._stream.close()
        self._board.close()


def read_metrics(folder: str | Path) -> list[dict[str, Any]]:
    """Rows of a run's `metrics.jsonl`, in order; a last line cut by a crash is left out.

    Raises:
        ValueError: a line other than the last is damaged.
    """
    file = Path(folder) / "metrics.jsonl"
    if not file.is_file():
        return []
    lines = file.read_text().splitlines()
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            if number == len(lines):
                break
            raise ValueError(f"{file}, line {number}: not JSON: {error}") from error
    return rows
