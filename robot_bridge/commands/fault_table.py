"""`armstack fault-table ARM`: does every fault to an arm over a real ROS graph and judges what went to its driver."""

from __future__ import annotations

import datetime
import json
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from rl_core.errors import ArmstackError
from robot_bridge.commands.output import console, emit_json
from robot_bridge.output_places import check_file, check_folder


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Does an arm of mine hold with its limits under every fault? Drops, delays and spoils commands, freezes the state, kills the
    sender, silences a guard, ..., and judges what went to the arm's driver by the bag.

    THE ARM MOVES: its first joint to and fro, at 0.3 rad/s at most, through the command filter. Run it against a simulator first, and
    with your hand on the e-stop. The exit status is 1 where a rule was broken.

    Example: armstack fault-table trossen --config my_arm.yaml
    """

    arm: Annotated[str, tyro.conf.Positional]
    """simulated, or the name of a driver."""
    config: Path | None = None
    """Parameter file of the arm node (launch/config/arm.yaml): the driver's settings and the tightening."""
    namespace: str = ""
    """Of all nodes; ros2_control needs one."""
    faults: tuple[str, ...] = ()
    """Names of the faults, as in the table; all where none is given."""
    out: Path | None = None
    """Write the figures to this JSON file."""
    bag: Path | None = None
    """Keep the bag that was judged in this folder."""
    json: bool = False
    """Print one JSON object on the last line."""


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack fault-table")
    if arguments.out is not None:
        check_file(arguments.out, "--out")
    if arguments.bag is not None:
        check_folder(arguments.bag, "--bag")
    if arguments.config is not None and not arguments.config.is_file():
        raise ArmstackError(f"--config {arguments.config}: no such file")
    from robot_bridge.arms.registry import SIMULATED, find_arm
    from robot_bridge.faults.catalogue import faults

    if arguments.arm != SIMULATED:
        find_arm(arguments.arm)
    try:
        chosen = faults(arguments.faults, controller=arguments.arm == "ros2_control")
    except ValueError as error:
        raise ArmstackError(f"--faults: {error}") from error
    from robot_bridge.ros_environment import prepare_ros_environment

    prepare_ros_environment()
    import rclpy

    from robot_bridge.faults.graph import fault_table
    from robot_bridge.faults.report import figures

    rclpy.init()
    folder = nullcontext(str(arguments.bag)) if arguments.bag is not None else tempfile.TemporaryDirectory()
    try:
        with folder as place:
            cells = fault_table(
                arguments.arm,
                chosen,
                Path(place),
                config=arguments.config,
                namespace=arguments.namespace,
                progress=lambda fault: console.print(f"{fault.name} ..."),
            )
    finally:
        rclpy.try_shutdown()
    table = Table("fault", "dropped [ms]", "constant [ms]", "bound [ms]", "step [mrad]", "of limit", "resumed", "", title=arguments.arm)
    for cell in cells:
        times = [_milliseconds(value) for value in (cell.dropped_s, cell.constant_s, cell.bound_s)]
        verdict = "; ".join(cell.problems) or "ok"
        table.add_row(cell.fault, *times, f"{cell.step * 1e3:.1f}", f"{cell.of_limit:.0%}", "yes" if cell.resumed else "never", verdict)
    console.print(table)
    written: dict[str, Any] = figures({arguments.arm: cells}, {"date": datetime.date.today().isoformat()})
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    if arguments.json:
        emit_json(written)
    return 1 if any(cell.problems for cell in cells) else 0


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value * 1e3:.0f}"
