"""A fault table as JSON and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from robot_bridge.faults.catalogue import FAULTS, Fault
from robot_bridge.faults.judge import Cell

Tables = Mapping[str, Sequence[Cell]]
"""Arm -> its cells."""

_COLUMNS = (
    "fault", "dropped after [ms]", "constant after [ms]", "bound [ms]", "largest step [mrad]", "velocity [rad/s]", "share of limit",
    "resumed", "",
)  # fmt: skip


def figures(tables: Tables, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What is written as JSON: `facts` of the run, then the cells of every arm."""
    return {**facts, "arms": {arm: [asdict(cell) for cell in cells] for arm, cells in tables.items()}}


def cells_of(written: Mapping[str, Any]) -> dict[str, list[Cell]]:
    """The tables that `figures` wrote."""
    return {arm: [Cell(**{**row, "problems": tuple(row["problems"])}) for row in rows] for arm, rows in written["arms"].items()}


def page(written: Mapping[str, Any]) -> str:
    """The tables as Markdown, one an arm, under the facts of the run."""
    facts = ", ".join(f"{name}: {value}" for name, value in written.items() if name != "arms")
    lines = [facts, ""]
    for arm, cells in cells_of(written).items():
        lines += [f"### {arm}", "", f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
        lines += [_row(cell) for cell in cells]
        lines.append("")
    return "\n".join(lines)


def catalogue() -> str:
    """The faults as a Markdown table: what is done, and what may let motion go on."""
    lines = ["| fault | what is done | what has to follow |", "|---|---|---|"]
    return "\n".join(lines + [f"| {fault.name} | {fault.what} | {_follows(fault)} |" for fault in FAULTS])


def _follows(fault: Fault) -> str:
    if fault.effect == "goes on":
        return "the sender is followed as if nothing were"
    ends = {"by itself": "goes on with the next valid command", "new sender": "until authority is taken anew", "rearm": "until rearmed"}
    return f"rest; {ends[fault.ends]}"


def _row(cell: Cell) -> str:
    times = " | ".join("-" if value is None else f"{value * 1e3:.0f}" for value in (cell.dropped_s, cell.constant_s, cell.bound_s))
    motion = f"{cell.step * 1e3:.1f} | {cell.velocity:.2f} | {cell.of_limit:.0%}"
    resumed = "**yes**" if cell.resumed else "never"
    return f"| {cell.fault} | {times} | {motion} | {resumed} | {'**' + '; '.join(cell.problems) + '**' if cell.problems else 'ok'} |"
