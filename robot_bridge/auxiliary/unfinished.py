"""Where a training keeps its whole epochs until its bundle is written, so that a stop at any point costs none of them."""

from __future__ import annotations

from pathlib import Path


def unfinished(run_dir: Path) -> Path:
    """The folder in that of the run. `train` of a row with `resumes` fills it; `armstack aux train` deletes it behind the bundle."""
    return run_dir / "training"
