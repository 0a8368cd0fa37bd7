"""Pictures of exploration: coverage over training, paths of skills, calibration of their values, and a video with one skill a tile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rl_core.errors import ArmstackError
from rl_core.training.video import write_mp4
from sim_envs.reward_free.labelled import flat

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Image = NDArray[np.uint8]
Box = tuple[ArrayLike, ArrayLike]
_GAP = 4
"""Pixels between tiles."""


def draw_coverage(
    visits: Mapping[str, Mapping[int, NDArray[np.int64]]], file: str | Path, *, box: Box, walls: ArrayLike | None = None
) -> Path:
    """One row a run, one map a moment of its training: cells coloured by the logarithm of their visits, unvisited ones left white.

    Args:
        visits: name of the run -> steps of training -> `CellCoverage.visits`, first axis x.
        file: PNG, PDF or SVG.
        box: lower and upper corner of the maps, (2,) each.
        walls: (walls, 2, 2), both ends of each, drawn black.

    Raises:
        ArmstackError: nothing to draw.
    """
    columns = max((len(moments) for moments in visits.values()), default=0)
    if columns == 0:
        raise ArmstackError(f"{file}: no coverage to draw")
    (x0, y0), (x1, y1) = np.asarray(box, np.float64)
    most = max(int(counts.max()) for moments in visits.values() for counts in moments.values())
    figure, panels = _panels(len(visits), columns)
    for row, (run, moments) in zip(panels, visits.items(), strict=True):
        for axes in row[len(moments) :]:
            axes.axis("off")
        for axes, (steps, counts) in zip(row, sorted(moments.items()), strict=False):
            shades = np.where(counts > 0, np.log1p(counts), np.nan)
            axes.imshow(shades.T, origin="lower", extent=(x0, x1, y0, y1), vmin=0.0, vmax=np.log1p(max(most, 1)))
            axes.set_title(f"{run}, {steps} steps: {(counts > 0).mean():.0%}", fontsize=8)
            _draw_walls(axes, walls)
    return _save(figure, file)


def draw_paths(paths: Mapping[str, ArrayLike], file: str | Path, *, box: Box, walls: ArrayLike | None = None) -> Path:
    """Skills in the plane: each path (T, 2) in its own colour, a dot where it ends.

    Raises:
        ArmstackError: nothing to draw.
    """
    if not paths:
        raise ArmstackError(f"{file}: no paths to draw")
    (x0, y0), (x1, y1) = np.asarray(box, np.float64)
    figure, panels = _panels(1, 1, side=4.5)
    axes = panels[0][0]
    for index, (name, path) in enumerate(paths.items()):
        x, y = np.asarray(path, np.float64).T
        axes.plot(x, y, color=f"C{index % 10}", linewidth=1.2, label=name)
        axes.plot(x[-1], y[-1], "o", color=f"C{index % 10}", markersize=4)
    axes.set(xlim=(x0, x1), ylim=(y0, y1), aspect="equal")
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    _draw_walls(axes, walls)
    return _save(figure, file)


def draw_calibration(predicted: ArrayLike, measured: ArrayLike, file: str | Path) -> Path:
    """Predicted values (n,) of skills over their measured returns (n,), with the line on which both are equal.

    Raises:
        ArmstackError: nothing to draw.
    """
    x, y = np.asarray(measured, np.float64), np.asarray(predicted, np.float64)
    if not len(x):
        raise ArmstackError(f"{file}: no skills to draw")
    figure, panels = _panels(1, 1, side=4.5)
    axes = panels[0][0]
    ends = [float(np.min([x, y])), float(np.max([x, y]))]
    axes.plot(ends, ends, "k--", linewidth=1, label="equal")
    axes.plot(x, y, "o", color="C0", markersize=4)
    sizes = np.abs(np.concatenate([x, y]))
    if sizes.max() > 100.0 * np.median(sizes):  # one skill that is far off would squeeze all others into a point
        linear = max(float(np.median(sizes)), 1e-6)
        axes.set_xscale("symlog", linthresh=linear)
        axes.set_yscale("symlog", linthresh=linear)
    varies = len(x) > 1 and np.ptp(x) > 0 and np.ptp(y) > 0
    axes.set(xlabel="measured discounted return", ylabel="predicted, F(s, z, a) . z at the start")
    axes.set_title(f"{len(x)} skills, correlation {np.corrcoef(x, y)[0, 1]:.2f}" if varies else f"{len(x)} skills", fontsize=9)
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    return _save(figure, file)


def film(env: gymnasium.Env[Any, Any], act: Callable[[NDArray[np.float32]], NDArray[Any]], seed: int) -> Iterator[Image]:
    """The pictures of one episode, the start's first; `act` gives the action (A,) for a flat observation (D,).

    Raises:
        ArmstackError: the world does not render.
    """
    if env.render_mode != "rgb_array":
        raise ArmstackError(f"{env}: render_mode is {env.render_mode!r}; make it with render_mode='rgb_array'")
    observation, _ = env.reset(seed=seed)
    over = False
    yield np.asarray(env.render())
    while not over:
        observation, _, terminated, truncated, _ = env.step(act(flat(observation)))
        over = terminated or truncated
        yield np.asarray(env.render())


def write_skill_grid(film_strips: Sequence[Iterable[Image]], file: str | Path, *, fps: float, columns: int = 4) -> Path:
    """An MP4 with one film a tile, row by row; a film that has ended shows its last picture until all have.

    Raises:
        ArmstackError: there are no films or no pictures.
    """
    return write_mp4(file, (tile(pictures, columns) for pictures in _side_by_side(film_strips)), fps)


def tile(pictures: Sequence[Image], columns: int) -> Image:
    """Pictures (H, W, 3) of one size as a grid on white, `columns` a row.

    Raises:
        ArmstackError: pictures of different sizes.
    """
    if len({picture.shape for picture in pictures}) != 1:
        raise ArmstackError(f"tiles of sizes {sorted({picture.shape for picture in pictures})}, valid: one size")
    height, width, _ = pictures[0].shape
    columns = min(columns, len(pictures))
    rows = -(-len(pictures) // columns)
    grid = np.full((rows * (height + _GAP) - _GAP, columns * (width + _GAP) - _GAP, 3), 255, np.uint8)
    for index, picture in enumerate(pictures):
        top, left = index // columns * (height + _GAP), index % columns * (width + _GAP)
        grid[top : top + height, left : left + width] = picture
    return grid


def _side_by_side(film_strips: Sequence[Iterable[Image]]) -> Iterator[list[Image]]:
    last: list[Image | None] = [None] * len(film_strips)
    for pictures in zip_longest(*film_strips):
        last = [picture if picture is not None else before for picture, before in zip(pictures, last, strict=True)]
        shown = [picture for picture in last if picture is not None]
        if len(shown) != len(last):
            raise ArmstackError("a film without pictures")
        yield shown


def _panels(rows: int, columns: int, *, side: float = 2.4) -> tuple[Figure, list[list[Axes]]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(side * columns, side * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, [list(row) for row in figure.subplots(rows, columns, squeeze=False)]


def _draw_walls(axes: Axes, walls: ArrayLike | None) -> None:
    for (x0, y0), (x1, y1) in np.asarray(walls) if walls is not None else ():
        axes.plot([x0, x1], [y0, y1], color="black", linewidth=1.5)
    axes.tick_params(labelsize=6)


def _save(figure: Figure, file: str | Path) -> Path:
    file = Path(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    return file
