"""Learning curve of a run as a PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def draw_learning_curve(rows: Sequence[Mapping[str, Any]], file: str | Path) -> Path:
    """Draws losses and, where there are any, evaluation figures of `read_metrics`' rows over the updates.

    No screen and no global state of matplotlib is used.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = sorted({name for row in rows for name in row if name != "step"})
    groups = {title: [name for name in names if name.startswith(group)] for title, group in (("evaluation", "eval/"), ("loss", "loss/"))}
    panels = [(title, chosen) for title, chosen in groups.items() if chosen]
    figure = Figure(figsize=(7, 3 * max(len(panels), 1)), layout="constrained")
    FigureCanvasAgg(figure)
    for index, (title, chosen) in enumerate(panels):
        axes = figure.add_subplot(len(panels), 1, index + 1)
        for name in chosen:
            points = [(row["step"], row[name]) for row in rows if name in row]
            axes.plot(*zip(*points, strict=True), label=name, marker="o" if len(points) < 30 else "", markersize=3)
        axes.set(title=title, xlabel="updates")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    file = Path(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    return file
