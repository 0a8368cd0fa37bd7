"""Pictures of recorded motions: the path in the drawing's plane with the push marked, and V over time with its bound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from robot_bridge.motion_trace import Motion, read_motions
from robot_bridge.pages import figure_uri, file_uri, render_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
_LEAST_V = 1e-6
"""Share of the largest V below which the arm stands at the goal, and V is noise."""


def _figure(columns: int, width: float) -> tuple[Figure, Sequence[Axes]]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, columns, figsize=(width, 4.2), layout="constrained", squeeze=False)
    return figure, axes[0]


def _draw_path(axes: Axes, motion: Motion, undisturbed: Motion | None, wanted: Array) -> None:
    axes.plot(*wanted[:, 1:].T, "k--", linewidth=1, label="the person's stroke")
    if undisturbed is not None:
        axes.plot(*undisturbed.hand[:, 1:].T, color="C2", linewidth=1, label="drawn undisturbed")
    axes.plot(*motion.hand[:, 1:].T, color="C0", linewidth=1.6, label="drawn")
    if motion.pushed is not None:
        begin, end = motion.pushed
        during = motion.hand[(motion.seconds >= begin) & (motion.seconds <= end)]
        strongest = motion.forces[np.linalg.norm(motion.forces, axis=1).argmax()]
        axes.plot(*during[:, 1:].T, color="C3", linewidth=3, label=f"pushed, up to {np.linalg.norm(strongest):.0f} N")
        tip = during[0, 1:] + 0.05 * strongest[1:] / max(float(np.linalg.norm(strongest)), 1e-9)
        axes.annotate("", xy=tuple(tip), xytext=tuple(during[0, 1:]), arrowprops={"arrowstyle": "->", "color": "C3"})
    axes.set(xlabel="y [m]", ylabel="z [m]", aspect="equal", title="seen from the front")
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)


def _draw_v(axes: Axes, motion: Motion) -> None:
    seconds = np.array([row.seconds for row in motion.certified])
    v, bound = (np.array([getattr(row, name) for row in motion.certified]) for name in ("v", "bound"))
    axes.semilogy(seconds, v, color="C0", label="V")
    axes.semilogy(seconds, bound, "k--", linewidth=1, label="its bound")
    if motion.pushed is not None:
        axes.axvspan(*motion.pushed, color="C3", alpha=0.25, label="pushed")
    counts = np.array([row.disturbances for row in motion.certified])
    for index in np.flatnonzero(np.diff(counts, prepend=0) > 0):
        axes.axvline(seconds[index], color="C1", linewidth=1, label="disturbance" if counts[index] == 1 else None)
    held = [row for row in motion.certified if row.verdict == "hold"]
    if held:
        axes.axvline(held[0].seconds, color="C3", linewidth=2, label="hold")
    axes.set(xlabel="s", title="V, the distance to the goal in the certificate's metric, squared")
    if np.isfinite(v).any():
        axes.set_ylim(bottom=_LEAST_V * np.nanmax(v))
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)


def draw_drawing(file: Path, motion: Motion, undisturbed: Motion | None, wanted: Array) -> Path:
    """Writes a PNG: path and V of a drawing.

    Args:
        file: to write.
        motion: the one that was pushed, under a certificate.
        undisturbed: the same without a push.
        wanted: (T, 3) m, the stroke.
    """
    from matplotlib import pyplot

    figure, (left, right) = _figure(2, 12)
    _draw_path(left, motion, undisturbed, wanted)
    _draw_v(right, motion)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    pyplot.close(figure)
    return file


def draw_certificates(bag: Path, file: Path, *, most: int = 6) -> Path | None:
    """Writes a PNG of V and its bound over time, of a bag's first `most` episodes; None where no policy was under a certificate."""
    from matplotlib import pyplot

    motions = [motion for motion in read_motions(bag) if motion.certified][:most]
    if not motions:
        return None
    figure, panels = _figure(len(motions), 5.5 * len(motions))
    for axes, motion in zip(panels, motions, strict=True):
        _draw_v(axes, motion)
        axes.set_title(f"V in the episode from seed {motion.seed}", fontsize=9)
    figure.savefig(file, dpi=100)
    pyplot.close(figure)
    return file


def write_drawing_report(
    file: Path,
    motion: Motion,
    undisturbed: Motion | None,
    wanted: Array,
    *,
    shape: str,
    bundle: Path,
    bag: Path,
    video: Path | None,
    no_video: str,
) -> Path:
    """Writes a page of a drawing: path, V, figures and the video, which is left out for the reason `no_video`."""
    figure, (left, right) = _figure(2, 12)
    _draw_path(left, motion, undisturbed, wanted)
    _draw_v(right, motion)
    last = motion.certified[-1] if motion.certified else None
    rows = [("largest distance from the stroke, cm", f"{100 * _distances(motion.hand, wanted).max():.1f}")]
    if undisturbed is not None:
        rows.append(("the same undisturbed, cm", f"{100 * _distances(undisturbed.hand, wanted).max():.1f}"))
    rows.append(("distance from the stroke's end, at the end, cm", f"{100 * np.linalg.norm(motion.hand[-1] - wanted[-1]):.1f}"))
    if last is not None:
        rows += [
            ("disturbances", str(last.disturbances)),
            ("verdict at the end", last.verdict + (f": {last.reason}" if last.reason else "")),
        ]
    return render_page(
        "drawing.html",
        file,
        title=f"The arm draws {shape}",
        subtitle="a contractive policy over ROS 2, held to its certificate; pushed on its way",
        picture=figure_uri(figure),
        rows=rows,
        video=file_uri(video) if video is not None else None,
        no_video=no_video,
        bundle=bundle,
        bag=bag,
    )


def _distances(points: Array, path: Array) -> Array:
    """From each point (T, 3) to the nearest of `path` (N, 3)."""
    distances: Array = np.linalg.norm(points[:, None] - path[None], axis=2).min(axis=1)
    return distances
