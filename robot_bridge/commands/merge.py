"""`armstack merge OUT IN...`: one dataset of several."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rl_core.data.editing import merge
from rl_core.data.formats import read_dataset
from rl_core.data.formats.convert import save
from robot_bridge.dataset_output import OutputOptions, working


@dataclass(frozen=True, kw_only=True)
class Arguments(OutputOptions):
    """Put the episodes of several datasets of one contract into one. Episodes keep their uuids.

    An episode that is in several of them is kept once; different episodes of one uuid are refused, and so are contracts that differ.

    Example: armstack merge all.hdf5 monday.hdf5 data/tuesday
    """

    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
    """File or folder to write."""
    sources: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="IN [IN ...]")]
    """Files and folders, in the order their episodes will have."""


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack merge")
    writer = arguments.writer(arguments.out, arguments.sources)
    with working() as progress:
        datasets = []
        for source in arguments.sources:
            progress(f"reading {source}")
            datasets.append(read_dataset(source))
        merged = merge(datasets)
        written = save(merged.dataset, arguments.out, writer, progress=progress)
    arguments.report("merged", [written], {"in": list(map(str, arguments.sources)), "kept_once": len(merged.kept_once)})
    return 0
