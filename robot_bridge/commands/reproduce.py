"""`armstack reproduce METHOD`: runs what is missing of a method's experiments."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated

import tyro

from robot_bridge.commands.output import console, emit_json


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Run the missing rows of experiments/METHOD.yaml, two processes at a time, and refresh the tables in docs/.

    Finished rows with an equal hash are skipped; a cut run goes on where it stopped. Run it from the source tree's root.
    """

    method: Annotated[str | None, tyro.conf.Positional] = None
    """File name in experiments/ without its ending: dac, demo."""
    tables: bool = False
    """Only write the tables in docs/ anew from results/."""
    hours: float | None = None
    """Start no further run after this time; what was left out is printed."""
    processes: int = 2
    """One-thread processes at a time."""
    json: bool = False
    """Print one JSON object on the last line."""


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack reproduce")
    from rl_core.experiments import ExperimentError, generate_tables, reproduce

    if arguments.tables:
        for file in generate_tables():
            console.print(f"wrote {file}")
        return 0
    if arguments.method is None:
        raise ExperimentError("say which method: a file name in experiments/ without its ending, or --tables")
    if arguments.processes < 1:
        raise ExperimentError(f"--processes: {arguments.processes}, valid: 1 or more")
    say = functools.partial(console.print, markup=False, highlight=False)
    report = reproduce(arguments.method, hours=arguments.hours, processes=arguments.processes, say=say)
    generate_tables()
    if arguments.json:
        emit_json({"done": list(report.done), "skipped": list(report.skipped), "failed": list(report.failed), "cut": list(report.cut)})
    return 1 if report.failed else 0
