"""`armstack find "the red can falls" FOLDER`: which clips of recorded bags and datasets show what a sentence says."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from robot_bridge.auxiliary.video.clip_index import ClipIndex, Hit, Taken
from robot_bridge.auxiliary.video.errors import VideoError
from robot_bridge.auxiliary.video.hit_film import hit_pictures, when, write_hit_sheet, write_hit_video
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
    changed recordings are added to it. What cannot be read, or not to its end, is named each time, and the status is 1 then.

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
        filled = fill(index, recordings)
    faulty = [*filled.unreadable, *filled.damaged]
    if faulty and not len(index):
        raise VideoError(f"no clips: {len(faulty)} of {len(recordings)} recordings cannot be read whole, and the others have no pictures")
    hits = index.find(arguments.text, arguments.top)
    console.print(_table(arguments.text, hits))
    wanted = [(file, write) for file, write in ((arguments.video, write_hit_video), (arguments.sheet, write_hit_sheet)) if file is not None]
    pictures = hit_pictures(hits) if wanted else []
    for file, write in wanted:
        console.print(f"wrote {write(hits, pictures, file)}")
    for says, places in (("not searched, as they cannot be read", filled.unreadable), ("searched in part", filled.damaged)):
        if places:
            console.print(f"{says}: {', '.join(map(str, places))}")
    if arguments.json:
        rows = [{"file": str(hit.source), **{name: getattr(hit, name) for name in _FIELDS}} for hit in hits]
        named = {name: list(map(str, getattr(filled, name))) for name in ("unreadable", "damaged", "unsearched")}
        figures = {"recordings": len(recordings), **named, "clips": len(index), "clips_added": filled.added}
        emit_json({"text": arguments.text, **figures, "hits": rows})
    return 1 if faulty else 0


@dataclass(kw_only=True)
class Filled:
    """What came of the recordings.

    Attributes:
        added: clips that were worked out now.
        unreadable: recordings of which nothing can be read.
        damaged: those of which a part can be read.
        unsearched: lines about topics of a kind that is not searched.
    """

    added: int = 0
    unreadable: list[Path] = field(default_factory=list)
    damaged: list[Path] = field(default_factory=list)
    unsearched: list[str] = field(default_factory=list)


def fill(index: ClipIndex, recordings: list[Path]) -> Filled:
    """Takes the recordings in, with a bar; says what of them cannot be read, or is not searched."""
    filled = Filled()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("looking at recordings", total=len(recordings))

        def done(recording: Path, taken: Taken) -> None:
            filled.added += taken.clips if taken.new else 0
            filled.damaged += [recording] if taken.damage else []
            unsearched = [f"{recording}: {line}" for line in taken.unsearched]
            filled.unsearched += unsearched
            progress.advance(bar)
            for line in [*(f"{recording}: {line}; the rest is searched" for line in taken.damage), *unsearched]:
                progress.console.print(line)
            if not (taken.clips or taken.damage or taken.unsearched):
                progress.console.print(f"{recording}: no pictures")

        def failed(recording: Path, error: str) -> None:
            filled.unreadable.append(recording)
            progress.advance(bar)
            progress.console.print(error)

        index.add(recordings, done, failed)
    return filled


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
        table.add_row(f"{hit.score:.3f}", when(hit.start_ns), f"{seconds:.1f}", where)
    return table
