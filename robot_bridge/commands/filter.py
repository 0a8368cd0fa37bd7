"""`armstack filter IN OUT`: the episodes that fulfil what is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rl_core.data.editing import filter_episodes
from rl_core.data.formats import read_dataset
from rl_core.data.formats.convert import save
from robot_bridge.dataset_output import OutputOptions, working


@dataclass(frozen=True, kw_only=True)
class Arguments(OutputOptions):
    """Keep the episodes that fulfil every criterion given. They keep their uuids and their order.

    Example: armstack filter all.hdf5 good.hdf5 --success --min-return 80
    """

    source: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="IN")]
    """File or folder."""
    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
    """File or folder to write."""
    success: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Only those known to have succeeded."""
    min_return: float | None = None
    """Only those whose undiscounted return is this or more."""
    min_length: int | None = None
    """Only those of this many steps or more."""
    uuid: tuple[str, ...] = ()
    """Only those of these uuids."""
    corrections: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Only those in which a person took a policy's place (`armstack teleop`)."""


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack filter")
    writer = arguments.writer(arguments.out, [arguments.source])
    with working() as progress:
        progress(f"reading {arguments.source}")
        dataset = read_dataset(arguments.source)
        kept = filter_episodes(
            dataset,
            success=arguments.success,
            min_return=arguments.min_return,
            min_length=arguments.min_length,
            uuids=arguments.uuid,
            corrections=arguments.corrections,
        )
        written = save(kept, arguments.out, writer, progress=progress)
    arguments.report("filtered", [written], {"in": str(arguments.source), "of_episodes": len(dataset)})
    return 0
