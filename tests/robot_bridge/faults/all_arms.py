"""Fault tables of every arm that can be run here, in one run: writes results/faults/ and the tables of docs/reference/faults.md.

`python -m tests.robot_bridge.faults.all_arms`, from the root of the source tree; eight minutes, on a machine with nothing else to do.
`python -m tests.robot_bridge.faults.all_arms ARM ...` makes those of some arms and prints them, nothing else.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from robot_bridge.faults.catalogue import faults
from robot_bridge.faults.judge import Cell
from robot_bridge.faults.report import catalogue, figures, page

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "results/faults/table.json"
PAGE = ROOT / "docs/reference/faults.md"
COMMAND = "python -m tests.robot_bridge.faults.all_arms"
_MARKED = re.compile(r"(<!-- faults:(\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def arms() -> dict[str, Callable[[Path], AbstractContextManager]]:
    """Title -> what makes it run."""
    from tests.robot_bridge.faults import arms_under_test as under_test

    return {
        "simulated (MuJoCo Panda)": under_test.simulated,
        "franka (franky-sim)": under_test.franka,
        "trossen (trossen-arm-sim)": under_test.trossen,
        "feetech (SO-101, emulated bus)": partial(under_test.servo, model="so101"),
        "dynamixel (WidowX 250, emulated bus)": partial(under_test.servo, model="wx250"),
        "ros2_control (stand-in for the controller)": under_test.ros2_control,
    }


def refresh(text: str, blocks: dict[str, str]) -> str:
    """`text` with what stands between the marks of `blocks` replaced."""
    return _MARKED.sub(lambda found: f"{found[1]}{blocks[found[2]]}\n{found[3]}" if found[2] in blocks else found[0], text)


def run(title: str, make: Callable[[Path], AbstractContextManager]) -> list[Cell] | None:
    """The cells of one arm; None where what it needs is not installed."""
    from robot_bridge.faults.graph import fault_table

    with tempfile.TemporaryDirectory() as folder:
        try:
            with make(Path(folder)) as ready:
                chosen = faults(controller=ready.arm == "ros2_control")
                print(title, flush=True)
                return fault_table(ready.arm, chosen, Path(folder), parameters=ready.parameters, namespace=ready.namespace)
        except pytest.skip.Exception as skipped:
            print(f"{title}: left out, {skipped}")
            return None


def main(wanted: list[str]) -> int:
    """Exit status 1 where a cell is red."""
    os.environ |= {
        "ROS_DOMAIN_ID": str(os.getpid() % 100 + 1), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    from robot_bridge.ros_environment import prepare_ros_environment

    prepare_ros_environment()
    import rclpy

    rclpy.init()
    chosen = {title: make for title, make in arms().items() if not wanted or title.split()[0] in wanted}
    tables = {title: cells for title, make in chosen.items() if (cells := run(title, make)) is not None}
    rclpy.try_shutdown()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    facts = {
        "date": datetime.date.today().isoformat(), "machine": f"{platform.machine()}, {os.cpu_count()} cores", "commit": commit,
        "command": COMMAND,
    }  # fmt: skip
    written = figures(tables, facts)
    if wanted:
        print(page(written))
    else:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(written, indent=1) + "\n")
        PAGE.write_text(refresh(PAGE.read_text(), {"catalogue": catalogue(), "tables": page(written)}))
    return 1 if any(cell.problems for cells in tables.values() for cell in cells) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
