"""`armstack split IN OUT_A OUT_B`: a dataset's episodes shared out to two."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rl_core.data.editing import split
from rl_core.data.episode import DatasetError
from rl_core.data.formats import read_dataset
from rl_core.data.formats.convert import save
from robot_bridge.dataset_output import OutputOptions, working


@dataclass(frozen=True, kw_only=True)
class Arguments(OutputOptions):
    """Share the episodes of a dataset out to two, by chance. Of successes, failures and unknown ones each part gets its share.

    Example: armstack split all.hdf5 train.hdf5 validation.hdf5 --share 0.9 --seed 0
    """

    source: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="IN")]
    """File or folder."""
    out_a: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT_A")]
    """File or folder to write the share to."""
    out_b: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT_B")]
    """File or folder to write the rest to."""
    share: float = 0.9
    """Share of the episodes that OUT_A gets, between 0 and 1."""
    seed: int = 0
    """Of the choice: equal seeds choose equal episodes."""


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack split")
    outs = (arguments.out_a, arguments.out_b)
    if outs[0].resolve() == outs[1].resolve():
        raise DatasetError(f"{outs[1]}: both parts would be written there; valid: two places")
    writers = [arguments.writer(out, [arguments.source]) for out in outs]
    with working() as progress:
        progress(f"reading {arguments.source}")
        parts = split(read_dataset(arguments.source), arguments.share, arguments.seed)
        written = [save(part, out, writer, progress=progress) for part, out, writer in zip(parts, outs, writers, strict=True)]
    arguments.report("split", written, {"in": str(arguments.source), "share": arguments.share, "seed": arguments.seed})
    return 0
