"""`armstack bench NAME`: ours and the peer, side by side in one run."""

from __future__ import annotations

import importlib
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from rl_core.errors import ArmstackError
from robot_bridge.commands.output import console, emit_json, figures_table


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Measure ours and the peer in the same process, alternating, and print both with their ratio.

    A ratio above 1 means ours is better. Benchmarks run from a source tree.
    """

    name: Annotated[
        Literal["sim", "replay", "policy", "contractive", "dvfb", "pear", "ros", "jitter", "filter", "data", "retrieval", "scan"],
        tyro.conf.Positional,
    ]
    """What to measure."""
    seconds: float | None = None
    """How long to measure, for benchmarks that run for a set time (ros, jitter)."""
    json: bool = False
    """Print one JSON object on the last line: ours, peer, ratio, peer_name, setting."""


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack bench")
    if not (Path.cwd() / "benchmarks" / f"{arguments.name}.py").is_file():
        raise ArmstackError(f"no benchmarks/{arguments.name}.py here; run `armstack bench` from the root of Armstack's source tree")
    sys.path.insert(0, str(Path.cwd()))  # benchmarks are not installed
    measure = importlib.import_module(f"benchmarks.{arguments.name}").main
    options = {}
    if arguments.seconds is not None:
        if "seconds" not in inspect.signature(measure).parameters:
            raise ArmstackError(f"--seconds: benchmark {arguments.name!r} measures a fixed amount of work; --seconds is for: ros, jitter")
        options["seconds"] = arguments.seconds
    console.print(f"measuring {arguments.name} ...")
    figures = measure(**options)
    figures_table(f"bench {arguments.name}", figures)
    if arguments.json:
        emit_json(figures)
    return 0
