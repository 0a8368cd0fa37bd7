"""`armstack resample IN OUT --rate-hz R`: a dataset at another rate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rl_core.data.formats import read_dataset
from rl_core.data.formats.convert import save
from rl_core.data.resampling import Numbers, resample
from robot_bridge.commands.output import console
from robot_bridge.dataset_output import OutputOptions, working


@dataclass(frozen=True, kw_only=True)
class Arguments(OutputOptions):
    """Bring a dataset to an even rate, which its contract then says: for recordings whose true rate is not the declared one.

    Deltas are summed and velocities averaged over the new periods, absolute actions and the gripper are those in force, quaternions are
    turned evenly (slerp), pictures are the nearest. Rewards are summed. What lies in a gap of the recording is counted.

    Example: armstack resample slow.hdf5 even.hdf5 --rate-hz 20
    """

    source: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="IN")]
    """File or folder."""
    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
    """File or folder to write."""
    rate_hz: float
    """Steps a second, 10 to 500."""
    numbers: Numbers = "linear"
    """Observed numbers between two samples: on the line between them, or held from the earlier one."""


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack resample")
    writer = arguments.writer(arguments.out, [arguments.source])
    with working() as progress:
        progress(f"reading {arguments.source}")
        dataset = read_dataset(arguments.source)
        made = resample(dataset, arguments.rate_hz, arguments.numbers)
        written = save(made.dataset, arguments.out, writer, progress=progress)
    if made.in_gaps:
        console.print(f"{made.in_gaps} steps lie in gaps of the recording: what they hold was not recorded")
    if made.actions_outside:
        console.print(f"in {made.actions_outside} steps an action leaves [-1, 1]; nothing is clipped")
    figures = {"in": str(arguments.source), "steps_before": dataset.steps, "rate_hz": arguments.rate_hz}
    arguments.report("resampled", [written], {**figures, "steps_in_gaps": made.in_gaps, "actions_outside": made.actions_outside})
    return 0
