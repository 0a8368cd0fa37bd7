"""reproduce: does a method's missing runs, some one-thread processes at a time, and goes on with those that were cut."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from rl_core.experiments.code_hash import run_hash
from rl_core.experiments.plan import Run, load_plan
from rl_core.experiments.results import current_commit, read_result, write_result
from rl_core.training.parent_watch import with_parent

ROOT = Path(__file__).resolve().parents[2]
_POLL_S = 0.1
_CUT_CODES = (128 + signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGINT, -signal.SIGTERM)


@dataclass(kw_only=True)
class Report:
    """Names of the runs, by what became of them: equal hash and skipped, done now, cut (or not begun) at the limit, failed."""

    skipped: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


class _Process:
    """A run being done; `seconds.json` keeps the time of earlier parts."""

    def __init__(self, run: Run, digest: str, commit: str, root: Path, run_dir: Path) -> None:
        self.run, self.digest, self.commit, self.run_dir = run, digest, commit, run_dir
        run_dir.mkdir(parents=True, exist_ok=True)
        seconds = run_dir / "seconds.json"
        self._before = float(json.loads(seconds.read_text())) if seconds.is_file() else 0.0
        self._begun = time.monotonic()
        self._log: IO[str] = open(run_dir / "log.txt", "a")
        threads = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")}
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-m", "rl_core.experiments.worker", str(root), run.method, run.name, str(run_dir)]
        # A group of its own: a Ctrl-C reaches the run once, from here, not twice.
        environment = with_parent({**os.environ, **threads, "PYTHONPATH": path})
        self.process = subprocess.Popen(command, stdout=self._log, stderr=subprocess.STDOUT, cwd=root, env=environment, process_group=0)

    @property
    def seconds(self) -> float:
        """Wall time of this part and those before."""
        return self._before + time.monotonic() - self._begun

    def close(self) -> None:
        """Keeps the time for a later part."""
        (self.run_dir / "seconds.json").write_text(json.dumps(self.seconds))
        self._log.close()


def reproduce(
    method: str,
    *,
    hours: float | None = None,
    processes: int = 2,
    only: Sequence[str] = (),
    root: Path = ROOT,
    say: Callable[[str], None] = lambda line: None,
) -> Report:
    """Does the runs of `root/experiments/METHOD.yaml` whose result is missing or stale.

    A run works in `root/runs/experiments/METHOD/RUN-HASH`; a run that was cut goes on there, if its function resumes.

    Args:
        method: whose runs.
        hours: time limit; runs still going then are stopped (they save a checkpoint), others are not begun.
        processes: runs at a time, one thread each.
        only: names or groups of the runs wanted; all if empty.
        root: the source tree.
        say: gets a line for each thing that happens, the cut runs included.

    Raises:
        ExperimentError: no such plan.
        KeyboardInterrupt: after the runs were stopped.
    """
    report = Report()
    deadline = time.monotonic() + hours * 3600 if hours is not None else float("inf")
    commit = current_commit(root)
    waiting: list[tuple[Run, str]] = []
    for run in load_plan(method, root).runs:
        if only and run.name not in only and run.group not in only:
            continue
        digest, result = run_hash(run, root), read_result(run, root)
        if result is not None and result.hash == digest:
            report.skipped.append(run.name)
            say(f"{run.name}: up to date")
        else:
            waiting.append((run, digest))
            if result is not None:
                say(f"{run.name}: stale, from commit {result.commit or 'unknown'} of {result.date}")
    running: list[_Process] = []
    try:
        while waiting or running:
            while waiting and len(running) < processes and time.monotonic() < deadline:
                run, digest = waiting.pop(0)
                run_dir = root / "runs" / "experiments" / method / f"{run.name}-{digest[:12]}"
                say(f"{run.name}: {'resumed' if run_dir.is_dir() else 'started'}")
                running.append(_Process(run, digest, commit, root, run_dir))
            for process in [p for p in running if p.process.poll() is not None]:
                running.remove(process)
                _collect(process, root, report, say)
            if time.monotonic() >= deadline:
                break
            time.sleep(_POLL_S)
    finally:
        for process in running:
            process.process.send_signal(signal.SIGTERM)
        for process in running:
            process.process.wait()
            _collect(process, root, report, say)
        for run, _ in waiting:
            report.cut.append(run.name)
            say(f"{run.name}: not begun")
    return report


def _collect(process: _Process, root: Path, report: Report, say: Callable[[str], None]) -> None:
    process.close()
    run, code, figures_file = process.run, process.process.returncode, process.run_dir / "figures.json"
    if code == 0 and figures_file.is_file():
        figures = json.loads(figures_file.read_text())
        write_result(run, root, run_hash=process.digest, figures=figures, seconds=process.seconds, commit=process.commit)
        report.done.append(run.name)
        say(f"{run.name}: done in {process.seconds:.0f} s")
    elif code in _CUT_CODES:
        report.cut.append(run.name)
        say(f"{run.name}: cut after {process.seconds:.0f} s; the next call goes on")
    else:
        report.failed.append(run.name)
        say(f"{run.name}: failed with exit code {code}, see {process.run_dir / 'log.txt'}")
