"""What the commands that write a dataset share: their options, and how they say what was written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl_core.data.formats.base import Format
from rl_core.data.formats.convert import Progress, Written, choose_writer, require_place
from robot_bridge.commands.output import console, emit_json, figures_table


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Options of a command that writes a dataset."""

    format: str = ""
    """Format to write: robomimic, folder, d4rl, lasa, minari, ...; none = what the ending of the path says."""
    overwrite: bool = False
    """Replace a dataset that is there already."""
    json: bool = False
    """Print one JSON object on the last line."""

    def writer(self, path: Path, sources: Sequence[Path]) -> Format:
        """The format for `path`, to which it may write; raises DatasetError."""
        writer = choose_writer(path, self.format)
        require_place(path, overwrite=self.overwrite, sources=sources)
        return writer

    def report(self, title: str, written: Sequence[Written], figures: dict[str, Any]) -> None:
        """Says what was written, what of it was lost, and the figures; with `json` for programs too."""
        outputs = [
            {"out": str(each.path), "out_format": each.format, "episodes": each.episodes, "steps": each.steps,
             "fingerprint": each.fingerprint, "lost": dict(each.lost)}
            for each in written
        ]  # fmt: skip
        figures_table(title, figures)
        for output in outputs:
            figures_table(f"wrote {output['out']}", output)
        console.print("read back and compared: equal" + (", but for what was lost" if any(each.lost for each in written) else ""))
        if self.json:
            emit_json({**figures, **(outputs[0] if len(outputs) == 1 else {"outputs": outputs})})


@contextmanager
def working() -> Iterator[Progress]:
    """A spinner; what it gives takes the text beside it."""
    with console.status("") as status:
        yield status.update
