"""`armstack trim IN OUT`: the pauses at the start and the end of episodes cut off."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rl_core.data.editing import trim
from rl_core.data.formats import read_dataset
from rl_core.data.formats.convert import save
from robot_bridge.commands.output import console
from robot_bridge.dataset_output import OutputOptions, working


@dataclass(frozen=True, kw_only=True)
class Arguments(OutputOptions):
    """Cut the steps in which the arm stands still from the start and the end of each episode: pauses teach a policy to stand still.

    An arm stands still where no joint (without joints: the end effector) and no finger moves, as in `armstack doctor DATASET`. The end
    of an episode that is terminal stays, because its last step is what ended the task. Pauses in between are part of the task.

    Example: armstack trim all.hdf5 trimmed.hdf5 --idle 2
    """

    source: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="IN")]
    """File or folder."""
    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
    """File or folder to write."""
    idle: int = 0
    """How many of these steps stay at either end."""


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack trim")
    writer = arguments.writer(arguments.out, [arguments.source])
    with working() as progress:
        progress(f"reading {arguments.source}")
        trimmed = trim(read_dataset(arguments.source), arguments.idle)
        written = save(trimmed.dataset, arguments.out, writer, progress=progress)
    if trimmed.motionless:
        console.print(f"the arm never moves in {', '.join(trimmed.motionless)}: left as they were")
    start, end = (sum(cut[side] for cut in trimmed.cut.values()) for side in (0, 1))
    figures = {"in": str(arguments.source), "cut_at_start": start, "cut_at_end": end, "motionless": list(trimmed.motionless)}
    arguments.report("trimmed", [written], figures)
    return 0
