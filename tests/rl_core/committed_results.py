"""Figures of the committed results of long runs, for the slow tests. A missing run fails, with the command that makes it."""

from __future__ import annotations

import statistics
from pathlib import Path

from rl_core.experiments import load_plan
from rl_core.experiments.results import read_result

ROOT = Path(__file__).resolve().parents[2]


def groups(method: str) -> list[str]:
    """The groups of runs in experiments/METHOD.yaml, in its order."""
    return list(dict.fromkeys(run.group for run in load_plan(method, ROOT).runs))


def values(method: str, group: str, figure: str) -> list[float]:
    """One figure over all seeds of a group."""
    runs = [run for run in load_plan(method, ROOT).runs if run.group == group]
    assert runs, f"no runs of group {group!r} in experiments/{method}.yaml"
    found = {run.name: read_result(run, ROOT) for run in runs}
    missing = [name for name, result in found.items() if result is None]
    assert not missing, f"results/{method} lacks {missing}; run `armstack reproduce {method}`"
    return [float(result.figures[figure]) for result in found.values() if result is not None]


def mean(method: str, group: str, figure: str) -> float:
    """Its mean over the seeds."""
    return statistics.fmean(values(method, group, figure))
