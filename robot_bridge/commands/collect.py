"""`armstack collect`: demonstrations from scripted experts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import tyro
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from robot_bridge.collection import CollectionPlan, collect
from robot_bridge.commands.output import console, emit_json, figures_table
from robot_bridge.output_places import check_folder


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Record demonstrations with the scripted experts; a second call records only what is missing.

    Example: armstack collect --out data/lift --plan.episodes 150
    """

    out: Path
    """Folder to record into: one HDF5 file an episode."""
    plan: CollectionPlan = field(default_factory=CollectionPlan)
    """What to record."""
    processes: int = 2
    """How many worlds run side by side."""
    json: bool = False
    """Print one JSON object on the last line."""


def main(argv: list[str]) -> int:
    """Runs the command line."""
    from robot_bridge.demonstrations import read_collected

    arguments = tyro.cli(Arguments, args=argv, prog="armstack collect")
    check_folder(arguments.out, "--out")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("episodes"), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(f"collecting {arguments.plan.task}", total=arguments.plan.episodes)
        recorded = collect(arguments.plan, arguments.out, processes=arguments.processes, progress=lambda n: bar.advance(task, n))
    dataset = read_collected(arguments.out)
    figures = {
        "dataset": str(arguments.out),
        "episodes": len(dataset),
        "recorded_now": recorded,
        "steps": dataset.steps,
        "success_rate": float(np.mean([bool(e.success) for e in dataset.episodes])),
        "return_mean": float(np.mean([e.episode_return for e in dataset.episodes])),
    }
    figures_table("collected", figures)
    if arguments.json:
        emit_json(figures)
    return 0
