"""Makes labelled pictures of parts (`sim_envs.parts`) as shards of `image_files`, one a crate; what is finished is kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rl_core.data.atomic import remove_stale_parts
from robot_bridge.auxiliary.image_data import ImageData, ImageDataError
from robot_bridge.auxiliary.image_files import HEADER, read_header, write_header, write_shard
from sim_envs.parts.catalogue import EVERY_NAME, NAMES, named
from sim_envs.parts.factors import SHIFTS, PartsError, Shift
from sim_envs.parts.pictures import draw_crate

OBJECTS = 24
"""Most objects of a class in one set of data."""
_SIZES = range(32, 513)


def make(
    out: str | Path,
    *,
    images: int = 6000,
    size: int = 96,
    shift: Shift = "none",
    seed: int = 0,
    defects: float = 0.0,
    classes: Sequence[str] = (),
    processes: int = 1,
    say: Callable[[str], None] = print,
) -> dict[str, float]:
    """Draws pictures into a folder; called again with equal settings it draws only what is missing.

    Another seed gives other objects, and another shift the same objects and views otherwise: train on one seed, and test on another.

    Args:
        out: folder of the shards; new, or of an interrupted run.
        images: pictures, shared out evenly among the classes.
        size: pixels of width and height, 32 to 512.
        shift: `none`, or what is different: see `sim_envs.parts.factors`.
        seed: of all objects and pictures.
        defects: share of pictures that show a damaged object (chip, bent, missing, scratch, stain, foreign).
        classes: names of the classes that are wanted, `household` for all of those; none = the twenty.
        processes: that draw side by side.
        say: told what was done.

    Returns:
        `images`, `images/drawn` in this run, `images_per_s`.

    Raises:
        PartsError: settings that cannot be; says which are valid.
        ImageDataError: `out` holds pictures of other settings, or something else.
        RobosuiteMissing, HouseholdMissing: the meshes are not installed.
    """
    names = named(classes) or NAMES
    _check(images, size, shift, defects, names, processes)
    out = Path(out)
    settings = {"maker": "parts", "images": images, "size": size, "shift": shift, "seed": seed, "defects": defects}
    _claim(out, names, settings)
    remove_stale_parts(out)
    jobs = [(crate, wanted) for crate, wanted in _shared_out(images, names).items() if not _shard(out, crate).is_file()]
    total = sum(len(wanted) for _, wanted in jobs)
    drawing = _Drawing(out, names, {"seed": seed, "size": size, "shift": shift, "defects": defects})
    columns = (TextColumn("drawing"), BarColumn(), MofNCompleteColumn(), TextColumn("pictures"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=total == 0) as bar:
        task = bar.add_task("drawing", total=total)
        if processes == 1 or len(jobs) < 2:
            for job in jobs:
                begun = bar.tasks[task].completed
                drawing(*job, done=lambda count, begun=begun: bar.update(task, completed=begun + count))  # type: ignore[misc]
        else:
            # A graphics context belongs to one process, and a forked child would share its parent's.
            with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
                for future in [pool.submit(drawing, *job) for job in jobs]:
                    bar.advance(task, future.result())
        elapsed = bar.tasks[task].elapsed or 0.0
    rate = total / max(elapsed, 1e-9)
    kept = images - total
    say(f"{out}: {images} pictures of {len(names)} classes, {total} drawn ({rate:.0f}/s), {kept} there already")
    return {"images": images, "images/drawn": total, "images_per_s": rate}


class _Drawing:
    """Draws a crate's pictures and writes their shard."""

    def __init__(self, out: Path, names: tuple[str, ...], settings: dict[str, Any]) -> None:
        self._out, self._names, self._settings = out, names, settings

    def __call__(self, crate: int, wanted: list[tuple[int, int]], done: Callable[[int], None] = lambda count: None) -> int:
        settings = dict(self._settings)
        found = draw_crate(settings.pop("seed"), crate, wanted, done=done, **settings)
        own = {EVERY_NAME.index(name): label for label, name in enumerate(self._names)}
        labels = found.labels.copy()
        for label, new in own.items():
            labels[found.labels == label] = new
        data = ImageData(
            frames=found.frames, labels=labels, classes=self._names, instances=found.instances, captions=found.captions,
            factors=found.factors, segmentation=found.masks,
        )  # fmt: skip
        write_shard(data, _shard(self._out, crate))
        return len(data)


def _shared_out(images: int, names: Sequence[str]) -> dict[int, list[tuple[int, int]]]:
    """Crate -> (label in `EVERY_NAME`, number) of its pictures; classes and crates get as many as one another, or one more."""
    crates = max(1, min(OBJECTS, images // len(names)))
    jobs: dict[int, list[tuple[int, int]]] = {crate: [] for crate in range(crates)}
    for index in range(images):
        turn, place = divmod(index, len(names))
        number, crate = divmod(turn, crates)
        jobs[crate].append((EVERY_NAME.index(names[place]), number))
    return jobs


def _check(images: int, size: int, shift: str, defects: float, names: Sequence[str], processes: int) -> None:
    unknown = [name for name in names if name not in EVERY_NAME]
    if unknown or len(names) < 2 or len(set(names)) < len(names):
        raise PartsError(f"classes {list(names)}: {unknown or 'fewer than two, or one twice'}; valid: {', '.join(EVERY_NAME)}")
    if images < len(names):
        raise PartsError(f"images = {images} for {len(names)} classes; valid: at least one a class")
    if size not in _SIZES:
        raise PartsError(f"size = {size}; valid: {_SIZES[0]}..{_SIZES[-1]} pixels")
    if shift not in SHIFTS:
        raise PartsError(f"shift {shift!r}; valid: {', '.join(SHIFTS)}")
    if not 0 <= defects <= 1:
        raise PartsError(f"defects = {defects}; valid: a share, 0..1")
    if not 1 <= processes <= (os.cpu_count() or 1):
        raise PartsError(f"processes = {processes}; valid: 1..{os.cpu_count()}, one a core")


def _claim(out: Path, names: tuple[str, ...], settings: dict[str, Any]) -> None:
    if (out / HEADER).is_file():
        header = read_header(out)
        if (header["made_from"], tuple(header["classes"])) != (settings, names):
            found = f"{header['made_from']} of classes {header['classes']}"
            raise ImageDataError(f"{out}: holds pictures of {found}; asked for: {settings}; valid: equal settings, or a new folder")
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ImageDataError(f"{out}: holds something else; valid: a new folder, or one that was made with these settings")
    write_header(out, names, settings)


def _shard(out: Path, crate: int) -> Path:
    return out / f"crate-{crate:03d}.npz"
