"""What a person who moves an arm sees: the keys, who has the arm, what it does, and what was recorded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from robot_bridge.teleop.keys import ACTION_HELP, MOVE_HELP

if TYPE_CHECKING:
    from robot_bridge.nodes.teleop_node import TeleopStatus

_COLOURS = {"moving": "green", "holding": "yellow", "stopped": "bold red", "fault": "bold red"}


def keys_shown(*, moves: bool) -> RenderableType:
    """The keys: those that move the arm, where they do, and the others."""
    helps = [MOVE_HELP, ACTION_HELP] if moves else [{key: text for key, text in ACTION_HELP.items() if key not in ("space", "+ -")}]
    tables = []
    for keys in helps:
        table = Table.grid(padding=(0, 2))
        for key, text in keys.items():
            table.add_row(Text(key, style="bold cyan"), text)
        tables.append(table)
    return Columns(tables, padding=(0, 6))


def status_shown(status: TeleopStatus | None) -> RenderableType:
    """The newest status; None while the arm was not heard."""
    if status is None:
        return Text("waiting for the arm ...", style="yellow")
    table = Table.grid(padding=(0, 2))
    who = "you" if status.yours else status.authority or "nobody"
    table.add_row("arm", Text(f"{status.state}{f': {status.reason}' if status.reason else ''}", style=_COLOURS.get(status.state, "")))
    table.add_row("authority", Text(f"{who}{', it follows you' if status.following else ''}", style="green" if status.yours else "yellow"))
    scale = f", limited to {status.speed_scale:.0%}" if status.speed_scale < 1.0 else ""
    table.add_row("speed", f"{status.speed:.0%}{scale}")
    table.add_row("episode", _episode(status))
    table.add_row("recorded", _recorded(status))
    if status.said:
        table.add_row("", Text(status.said, style="italic"))
    return table


def page(status: TeleopStatus | None, title: str, *, moves: bool) -> RenderableType:
    """Keys and status in one frame."""
    return Panel(Group(keys_shown(moves=moves), Text(""), status_shown(status)), title=Text(title))


def _episode(status: TeleopStatus) -> str:
    marked = ", ".join(f"{count} {outcome}" for outcome, count in status.marked.items() if count)
    now = "none"
    if status.episode is not None and status.episode["index"] >= 0:
        running = status.episode["phase"] == "running"
        now = f"{status.episode['index']} {'runs' if running else 'is over'}"
    return f"{now}{f'; marked: {marked}' if marked else ''}"


def _recorded(status: TeleopStatus) -> Text:
    recorder = status.recorder
    if not recorder:
        return Text("no recorder heard")
    lost = json.loads(recorder.get("losses", "[]"))
    shown = f"{recorder.get('episodes', '0')} in {recorder.get('folder', '')}"
    return Text(f"{shown}, LOST {len(lost)}: {'; '.join(lost)}", style="bold red") if lost else Text(shown)
