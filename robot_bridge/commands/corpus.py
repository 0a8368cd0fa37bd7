"""`armstack corpus`: demonstrations of many tasks, to retrieve from, and few of the targets."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import tyro
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rl_core.data.hdf5 import open_hdf5
from rl_core.data.recording import finished_episodes
from robot_bridge.commands.output import console, emit_json, figures_table
from robot_bridge.corpus import CorpusPlan, parts, record_corpus
from robot_bridge.output_places import check_file, check_folder


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Record the workbench's tasks with scripted experts, each with its instruction; a second call records only what is missing.

    OUT/prior is the corpus, OUT/targets/TASK are the demonstrations of what the corpus has not.

    Example: armstack corpus --out data/corpus --plan.demos 20 --plan.images
    """

    out: Path
    """Folder to record into."""
    plan: CorpusPlan = field(default_factory=CorpusPlan)
    """What to record."""
    sheet: Path | None = None
    """Picture of every task, a film strip each (PNG)."""
    processes: int = 2
    """How many worlds run side by side."""
    json: bool = False
    """Print one JSON object on the last line."""


def _steps(folder: Path) -> int:
    """Steps of all demonstrations in a folder."""
    steps = 0
    for file in finished_episodes(folder).values():
        with open_hdf5(file) as opened:
            steps += int(opened["data"].attrs["total"])
    return steps


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack corpus")
    check_folder(arguments.out, "--out")
    if arguments.sheet is not None:
        check_file(arguments.sheet, "--sheet")
    planned = parts(arguments.plan)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("demonstrations"), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(f"recording {len(planned)} tasks", total=sum(part.demos for part in planned))
        recorded = record_corpus(arguments.plan, arguments.out, processes=arguments.processes, progress=lambda n: bar.advance(task, n))
    folders = {folder: arguments.out / folder for folder in dict.fromkeys(part.folder for part in planned)}
    figures = {
        "corpus": str(arguments.out),
        "tasks": len(planned),
        "recorded_now": recorded,
        "demonstrations": {name: len(finished_episodes(folder)) for name, folder in folders.items()},
        "steps": {name: _steps(folder) for name, folder in folders.items()},
    }
    if arguments.sheet is not None:
        from robot_bridge.corpus_sheet import draw_sheet

        draw_sheet(arguments.sheet)
    figures_table("recorded", figures)
    if arguments.json:
        emit_json(figures)
    return 0
