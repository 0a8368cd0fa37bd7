"""A contact sheet of the parts: a row a class, a column a shift, and the defects beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sim_envs.parts.catalogue import EVERY_NAME, NAMES
from sim_envs.parts.factors import SHIFTS
from sim_envs.parts.pictures import draw_crate


def draw_sheet(path: str | Path, *, seed: int = 0, size: int = 128, classes: Sequence[str] = NAMES) -> Path:
    """Writes the sheet, PNG: one object of each class from one view, under each shift; then three defects.

    Raises:
        RobosuiteMissing, HouseholdMissing: the meshes are not installed.
        RenderingUnavailable: no graphics library draws here.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    labels = [EVERY_NAME.index(name) for name in classes]
    columns = {f"{shift}": draw_crate(seed, 0, [(label, 0) for label in labels], size=size, shift=shift) for shift in SHIFTS}
    columns |= {f"defect {crate}": draw_crate(seed, crate, [(label, 1) for label in labels], size=size, defects=1.0) for crate in (1, 2, 3)}
    figure, axes = pyplot.subplots(len(labels), len(columns), figsize=(1.15 * len(columns), 1.3 * len(labels)), squeeze=False)
    for row, (axis_row, name) in enumerate(zip(axes, classes, strict=True)):
        for axis, (title, pictures) in zip(axis_row, columns.items(), strict=True):
            axis.imshow(pictures.frames[row])
            axis.set_xticks([])
            axis.set_yticks([])
            axis.set_title(pictures.factors["defect"][row] or title, fontsize=6, pad=1)
        axis_row[0].set_ylabel(name, fontsize=7)
    figure.tight_layout(pad=0.3)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return path
