"""What commands show: rich text for people, one JSON object on the last line with `--json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

# What is shown holds paths, names and advice such as pip install 'armstack[ros]': no markup.
console = Console(stderr=True, markup=False, emoji=False)


def emit_json(figures: Mapping[str, Any]) -> None:
    """Prints the figures as one JSON object on one line of standard output, the command's last."""
    sys.stdout.write(json.dumps(figures, default=float) + "\n")
    sys.stdout.flush()


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def figures_table(title: str, rows: Mapping[str, Any]) -> None:
    """Shows name -> figure as a table; a mapping has a row an entry."""
    table = Table(title=title, show_header=False)
    for name, value in rows.items():
        if isinstance(value, Mapping):
            for inner, figure in value.items():
                table.add_row(f"{name} {inner}", _shown(figure))
        else:
            table.add_row(name, _shown(value))
    console.print(table)
