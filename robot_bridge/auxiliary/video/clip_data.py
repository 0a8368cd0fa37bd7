"""Makes clips of scripted behaviours (`sim_envs.clips`) as shards, and stills to train a model of pictures and words on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rl_core.data.atomic import remove_stale_parts
from robot_bridge.auxiliary import image_files
from robot_bridge.auxiliary.image_data import ImageData
from robot_bridge.auxiliary.video.clips import HEADER, ClipData, read_header, shard_file, write_header, write_shard
from robot_bridge.auxiliary.video.errors import VideoError
from sim_envs.clips.drawn import STILL_CLASSES, draw_clips, draw_stills, plan_twins

STILLS = "stills"
_PAIRS, _STILLS = 20, 200
"""Pairs of clips, or stills, in a shard: what an interruption costs."""

Done = Callable[[int], None]


def make(
    out: str | Path,
    *,
    clips: int = 600,
    stills: int = 0,
    frames: int = 12,
    size: int = 96,
    seed: int = 0,
    say: Callable[[str], None] = print,
) -> dict[str, float]:
    """Draws clips into a folder; called again with equal settings it draws only what is missing.

    Another seed gives other scenes: train on one seed, and test on another. Stills are single pictures with captions for `armstack aux
    vlm`, in OUT/stills; let the model see those of a seed that no clip is tested on.

    Args:
        out: folder of the shards; new, or of an interrupted run.
        clips: how many, an even number: a clip and its twin.
        stills: single pictures.
        frames: of a clip.
        size: pixels of width and height, 32 to 512.
        seed: of all scenes.
        say: told what was done.

    Returns:
        `clips` and `stills`, and how many of each were drawn in this run.

    Raises:
        VideoError: settings that cannot be, or `out` holds clips of other settings, or something else.
        RenderingUnavailable: no graphics library draws here.
    """
    out = Path(out)
    if clips < 2 or clips % 2 or stills < 0 or frames < 2 or not 32 <= size <= 512:
        raise VideoError(
            f"clips = {clips}, stills = {stills}, frames = {frames}, size = {size}; valid: an even number "
            "of clips, 2 or more, 0 stills or more, 2 frames or more, 32..512 pixels"
        )
    _claim(out, {"maker": "behaviours", "clips": clips, "stills": stills, "frames": frames, "size": size, "seed": seed})
    remove_stale_parts(out)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("drawing clips", total=clips)
        drawn = _clips(out, clips // 2, frames, size, seed, lambda count: bar.advance(task, count))
        task = bar.add_task("drawing stills", total=stills, visible=stills > 0)
        pictures = _stills(out / STILLS, stills, size, seed, lambda count: bar.advance(task, count))
    say(f"{out}: {clips} clips, {drawn} drawn; {stills} stills, {pictures} drawn; the rest was there already")
    return {"clips": clips, "clips/drawn": drawn, "stills": stills, "stills/drawn": pictures}


def _clips(out: Path, pairs: int, frames: int, size: int, seed: int, done: Done) -> int:
    twins, drawn = plan_twins(seed, pairs), 0
    for number, first in enumerate(range(0, pairs, _PAIRS)):
        chosen, file = twins[first : first + _PAIRS], shard_file(out, number)
        if file.is_file():
            done(2 * len(chosen))
            continue
        found = draw_clips(seed, chosen, first, frames=frames, size=size, done=lambda count: done(1))
        count = len(found.frames)
        write_shard(
            ClipData(
                frames=found.frames, lengths=np.full(count, frames), sentences=found.sentences, meanings=found.meanings,
                groups=first + np.arange(count) // 2, ordered=found.ordered,
            ),
            file,
        )  # fmt: skip
        drawn += count
    return drawn


def _stills(folder: Path, count: int, size: int, seed: int, done: Done) -> int:
    if not count:
        return 0
    drawn = 0
    if not (folder / image_files.HEADER).is_file():
        image_files.write_header(folder, STILL_CLASSES, {"maker": "behaviours", "stills": count, "size": size, "seed": seed})
    for first in range(0, count, _STILLS):
        wanted, file = min(_STILLS, count - first), folder / f"stills-{first // _STILLS:03d}.npz"
        if file.is_file():
            done(wanted)
            continue
        found = draw_stills(seed, first, wanted, size=size, done=lambda number: done(1))
        data = ImageData(
            frames=found.frames, labels=found.labels, classes=STILL_CLASSES, instances=first + np.arange(wanted), captions=found.captions,
            factors={"colour": np.array(found.colours)},
        )  # fmt: skip
        image_files.write_shard(data, file)
        drawn += wanted
    return drawn


def _claim(out: Path, settings: dict[str, Any]) -> None:
    if (out / HEADER).is_file():
        if (found := read_header(out)) != settings:
            raise VideoError(f"{out}: holds clips of {found}; asked for: {settings}; valid: equal settings, or a new folder")
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise VideoError(f"{out}: holds something else; valid: a new folder, or one that was made with these settings")
    else:
        write_header(out, settings)
