"""`armstack find "the red can falls" FOLDER`: which clips of recorded bags and datasets show what a sentence says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from robot_bridge.auxiliary.video.clip_index import ClipIndex, Hit
from robot_bridge.auxiliary.video.errors import VideoError
from robot_bridge.auxiliary.video.hit_film import hit_pictures, write_hit_sheet, write_hit_video
from robot_bridge.auxiliary.video.recordings import find_recordings
from robot_bridge.auxiliary.video.searcher_bundle import read_searcher, unknown_words
from robot_bridge.commands.output import console, emit_json
from robot_bridge.missing_extra import named_extra
from robot_bridge.output_places import check_file, check_folder

INDEX = Path("runs/clip-index")
_MOST_FPS = 1000


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Find clips in a folder of recordings by what happens in them (TempMe, arXiv 2409.01156).

    Bags are searched by their image topics, datasets by their image channels. What was looked at once is kept in the index; new and
    changed recordings are added to it. What cannot be read is named, and the status is 1 then.

    Example: armstack find "the gripper drops the red can" recordings --bundle runs/tempme/bundle --video found.mp4
    """

    text: Annotated[str, tyro.conf.Positional]
    """What happens, in words."""
    folder: Annotated[Path, tyro.conf.Positional]
    """A recording, or a folder with recordings at any depth."""
    bundle: Path
    """Bundle of `armstack aux train tempme`, or of a baseline of it."""
    top: int = 10
    """Clips that are shown."""
    fps: float = 0.0
    """Frames a second that are taken of long recordings; 0 = the bundle's."""
    index: Path = INDEX
    """Folder of the index."""
    video: Path | None = None
    """MP4 to write: the clips one behind the other."""
    sheet: Path | None = None
    """PNG to write: the clips one below the other."""
    threads: int = 1
    """Threads of torch."""
    json: bool = False
    """Print one JSON object on the last line."""


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack find")
    _check(arguments)
    torch.set_num_threads(arguments.threads)
    recordings = find_recordings(arguments.folder)
    with named_extra("armstack find", "vlm"):
        searcher, sha256 = read_searcher(arguments.bundle)
        if unknown := unknown_words(searcher, arguments.text):
            console.print(unknown)
        index = ClipIndex(arguments.index, searcher, sha256, frames=searcher.config.frames, fps=arguments.fps or searcher.config.fps)
        added, unreadable = fill(index, recordings)
    if unreadable and not len(index):
        raise VideoError(f"no clips: {len(unreadable)} of {len(recordings)} recordings cannot be read, and the others have no pictures")
    hits = index.find(arguments.text, arguments.top)
    console.print(_table(arguments.text, hits))
    wanted = [(file, write) for file, write in ((arguments.video, write_hit_video), (arguments.sheet, write_hit_sheet)) if file is not None]
    pictures = hit_pictures(hits) if wanted else []
    for file, write in wanted:
        console.print(f"wrote {write(hits, pictures, file)}")
    if unreadable:
        console.print(f"not searched, as they cannot be read: {', '.join(map(str, unreadable))}")
    if arguments.json:
        rows = [{"file": str(hit.source), **{name: getattr(hit, name) for name in _FIELDS}} for hit in hits]
        figures = {"recordings": len(recordings), "unreadable": list(map(str, unreadable)), "clips": len(index), "clips_added": added}
        emit_json({"text": arguments.text, **figures, "hits": rows})
    return 1 if unreadable else 0


def fill(index: ClipIndex, recordings: list[Path]) -> tuple[int, list[Path]]:
    """Takes the recordings in, with a bar; gives how many clips were worked out, and which recordings cannot be read."""
    added, unreadable = 0, []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("looking at recordings", total=len(recordings))

        def done(recording: Path, clips: int, new: bool) -> None:
            nonlocal added
            added += clips if new else 0
            progress.advance(bar)
            if not clips:
                progress.console.print(f"{recording}: no pictures")

        def failed(recording: Path, error: str) -> None:
            unreadable.append(recording)
            progress.advance(bar)
            progress.console.print(error)

        index.add(recordings, done, failed)
    return added, unreadable


def _check(arguments: Arguments) -> None:
    if not arguments.text.strip():
        raise VideoError("text is empty, valid: what happens, in words, e.g. 'the gripper drops the red can'")
    if arguments.top < 1 or arguments.threads < 1 or not 0 <= arguments.fps <= _MOST_FPS:
        raise VideoError(
            f"--top {arguments.top}, --threads {arguments.threads}, --fps {arguments.fps}; "
            f"valid: 1 or more, 1 or more, 0 to {_MOST_FPS} (0 takes the bundle's)"
        )
    check_folder(arguments.index, "--index")
    for file, option, ending in ((arguments.video, "--video", ".mp4"), (arguments.sheet, "--sheet", ".png")):
        if file is not None:
            check_file(file, option)
            if file.suffix.lower() != ending:
                raise VideoError(f"{option} {file}: the ending is {file.suffix!r}, valid: {ending}")


_FIELDS = ("episode", "camera", "start_ns", "end_ns", "score")


def _table(text: str, hits: list[Hit]) -> Table:
    table = Table(title=f"clips for {text!r}", box=None, pad_edge=False)
    for heading in ("score", "from", "seconds"):
        table.add_column(heading, no_wrap=True)
    table.add_column("where", overflow="fold")
    for hit in hits:
        seconds = (hit.end_ns - hit.start_ns) * 1e-9
        where = " ".join(filter(None, (str(hit.source), hit.episode, hit.camera)))
        table.add_row(f"{hit.score:.3f}", _when(hit.start_ns), f"{seconds:.1f}", where)
    return table


def _when(stamp_ns: int) -> str:
    """A stamp as a date, or as seconds where it is none (simulated time)."""
    if stamp_ns < 10**17:  # before 1973
        return f"{stamp_ns * 1e-9:.2f} s"
    return datetime.fromtimestamp(stamp_ns * 1e-9, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-4]
