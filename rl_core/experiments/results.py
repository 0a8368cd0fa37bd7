"""Results: `results/METHOD/RUN.json`, one file a run, committed."""

from __future__ import annotations

import datetime
import json
import math
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rl_core.experiments.plan import ExperimentError, Run


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a run found.

    Attributes:
        hash: see `rl_core.experiments.code_hash`; another one now means that the result is stale.
        config: of the run.
        seed: of the run.
        figures: name -> number (or None).
        seconds: wall time, over all resumed parts.
        commit: of the code it ran with; ends in `+` where that had uncommitted changes.
        date: day it ended, UTC.
    """

    hash: str
    config: Mapping[str, Any]
    seed: int
    figures: Mapping[str, float | None]
    seconds: float
    commit: str
    date: str


def result_file(run: Run, root: Path) -> Path:
    """Where a run's result lies."""
    return root / "results" / run.method / f"{run.name}.json"


def read_result(run: Run, root: Path) -> Result | None:
    """A run's result, None where there is none yet.

    Raises:
        ExperimentError: the file is damaged.
    """
    file = result_file(run, root)
    if not file.is_file():
        return None
    try:
        return Result(**json.loads(file.read_text()))
    except (ValueError, TypeError) as error:
        raise ExperimentError(f"{file}: not a result: {error}") from error


def write_result(run: Run, root: Path, *, run_hash: str, figures: Mapping[str, Any], seconds: float, commit: str) -> Result:
    """Writes a run's result.

    Raises:
        ExperimentError: a figure that is neither a finite number nor None.
    """
    for name, value in figures.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value)):
            raise ExperimentError(f"run {run.name!r}: figure {name!r} is {value!r}, valid: a finite number or None")
    result = Result(
        hash=run_hash,
        config=run.config,
        seed=run.seed,
        figures=figures,
        seconds=round(seconds, 1),
        commit=commit,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
    )
    file = result_file(run, root)
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".json.part")
    part.write_text(json.dumps(asdict(result), indent=1, sort_keys=True) + "\n")
    part.replace(file)
    return result


def current_commit(root: Path) -> str:
    """Short commit of the source tree, with `+` for uncommitted changes of code; empty outside a repository."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True).stdout.strip()

    try:
        commit = git("rev-parse", "--short=10", "HEAD")
        return commit + ("+" if git("status", "--porcelain", "--", "*.py") else "")
    except (subprocess.CalledProcessError, FileNotFoundError):
        return ""
