"""How a two-level policy's curriculum went: lengths of the demonstrations' segments, subgoals hit and success along a training run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rl_core.training.metrics import read_metrics

SEGMENTS = "curriculum/segment_length"
SHARES = {
    "curriculum/hit_rate": "subgoals hit, exploring",
    "eval/hit_rate": "subgoals hit, evaluation",
    "collect/success_rate": "success, exploring",
    "eval/success_rate": "success, evaluation",
}


def draw_curriculum(run_dir: Path) -> Path | None:
    """Writes `run_dir/curriculum.png` from the run's metrics; None where it has no curriculum (one level, or another method)."""
    rows = read_metrics(run_dir)
    if not any(SEGMENTS in row or "curriculum/hit_rate" in row for row in rows):
        return None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 6), layout="constrained")
    FigureCanvasAgg(figure)
    lengths, shares = figure.subplots(2, 1, sharex=True)
    episodes, values = _points(rows, SEGMENTS)
    lengths.step(episodes, values, where="post", color="C0", marker=_marker(values))
    lengths.set(title="mean length of the demonstrations' segments, steps", ylim=(0, None))
    for name, label in SHARES.items():
        episodes, values = _points(rows, name)
        if values:
            dots = name.startswith("eval/")
            shares.plot(
                episodes, values, label=label, marker="o" if dots else _marker(values), linestyle="--" if dots else "-", markersize=3
            )
    shares.set(title="shares", xlabel="episodes", ylim=(-0.02, 1.02))
    shares.legend(fontsize=8)
    for axes in (lengths, shares):
        axes.grid(alpha=0.3)
    file = run_dir / "curriculum.png"
    figure.savefig(file, dpi=110)
    return file


def _marker(values: Sequence[float]) -> str:
    """A line of a point or two would not be seen without."""
    return "o" if len(values) < 20 else ""


def _points(rows: Sequence[Mapping[str, Any]], name: str) -> tuple[list[float], list[float]]:
    """Episodes collected, and the values of a metric then."""
    known = [row for row in rows if name in row and "collect/episodes" in row]
    return [row["collect/episodes"] for row in known], [row[name] for row in known]
