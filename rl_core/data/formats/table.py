"""The table in the docs of what each format cannot hold; `python -m rl_core.data.formats.table` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path

from rl_core.data.formats import FORMATS

DOCUMENT = Path(__file__).parents[3] / "docs/reference/datasets.md"
_BLOCK = re.compile(r"(?<=^<!-- formats -->\n).*?(?=^<!-- end -->)", re.DOTALL | re.MULTILINE)


def document_with_table() -> str:
    """The text of `DOCUMENT` as it should be."""
    rows = [("name", "recognised by", "chosen for", "cannot hold"), ("---",) * 4]
    for format in FORMATS:
        endings = ", ".join(f"`{ending}`" if ending else "a path without an ending" for ending in format.extensions)
        losses = "; ".join(f"`{field}`: {text}" for field, text in format.cannot_hold.items())
        rows.append((f"`{format.name}`", format.layout, endings or "its name only", losses or "holds everything"))
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return _BLOCK.sub(lambda _: table, DOCUMENT.read_text())


if __name__ == "__main__":
    DOCUMENT.write_text(document_with_table())
