"""Films of what was found: the best clips one behind the other as MP4, or one below the other as a sheet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageOps

from rl_core.training.video import write_mp4
from robot_bridge.auxiliary.video.clip_index import Hit
from robot_bridge.auxiliary.video.errors import VideoError
from robot_bridge.auxiliary.video.film import Film
from robot_bridge.auxiliary.video.recordings import films

_SIDE, _TITLE, _SHOWN = 192, 42, 8
_LETTERS = 36
"""So many of the title's letters have room in a line."""
_FPS, _FILM_FPS = 4.0, 8.0
Pictures = list[NDArray[np.uint8]]


def write_hit_video(hits: Sequence[Hit], pictures: Sequence[Pictures], file: Path) -> Path:
    """Writes the hits as MP4, best first, each with its rank, score, time, recording and camera, at twice the time of its pictures.

    Args:
        hits: best first.
        pictures: of each hit, by `hit_pictures`.
        file: MP4.
    """

    def frames() -> Iterator[NDArray[np.uint8]]:
        for rank, (hit, shown) in enumerate(zip(hits, pictures, strict=True), 1):
            for picture in shown:
                yield np.asarray(_titled(picture, title_of(rank, hit)))

    return write_mp4(file, frames(), _FILM_FPS)


def write_hit_sheet(hits: Sequence[Hit], pictures: Sequence[Pictures], file: Path) -> Path:
    """Writes the hits as one PNG, a row each with eight of its pictures. For the arguments see `write_hit_video`."""
    rows = []
    for rank, (hit, shown) in enumerate(zip(hits, pictures, strict=True), 1):
        picked = [shown[index] for index in np.linspace(0, len(shown) - 1, _SHOWN).astype(int)]
        titles = [title_of(rank, hit), *[""] * (_SHOWN - 1)]
        rows.append(np.concatenate([np.asarray(_titled(p, title)) for p, title in zip(picked, titles, strict=True)], axis=1))
    Image.fromarray(np.concatenate(rows)).save(file)
    return file


def hit_pictures(hits: Sequence[Hit]) -> list[Pictures]:
    """The pictures of each hit, some four a second; each recording is read once.

    Raises:
        VideoError: a recording has none of that camera and time any more.
    """
    found: dict[Hit, Pictures] = {}
    for source in dict.fromkeys(hit.source for hit in hits):
        wanted = [hit for hit in hits if hit.source == source]
        for film in films(source, round(1e9 / _FPS)):
            found |= {hit: shown for hit in wanted if (shown := _shown(film, hit))}
            if all(hit in found for hit in wanted):
                break
    if lost := [hit for hit in hits if hit not in found]:
        hit = lost[0]
        raise VideoError(f"{hit.source}: no pictures of {hit.camera} from {hit.start_ns} to {hit.end_ns} ns any more; index it again")
    return [found[hit] for hit in hits]


def title_of(rank: int, hit: Hit) -> str:
    """Rank, score and time of a hit, its recording and episode, its camera, a line each; of what is too long, the end."""
    lines = (f"{rank}. {hit.score:.2f}  {when(hit.start_ns)}", f"{hit.source.name} {hit.episode}".rstrip(), hit.camera)
    return "\n".join(line if len(line) <= _LETTERS else f"...{line[3 - _LETTERS :]}" for line in lines)


def when(stamp_ns: int) -> str:
    """A stamp as a date, or as seconds where it is none (simulated time)."""
    if stamp_ns < 10**17:  # before 1973
        return f"{stamp_ns * 1e-9:.2f} s"
    return datetime.fromtimestamp(stamp_ns * 1e-9, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-4]


def _shown(film: Film, hit: Hit) -> Pictures:
    """Those of the hit; none where the film is another one."""
    if (film.episode, film.camera) != (hit.episode, hit.camera):
        return []
    rows = np.flatnonzero((film.stamps_ns >= hit.start_ns) & (film.stamps_ns <= hit.end_ns))
    step = max(round(1e9 / _FPS / max(float(np.median(np.diff(film.stamps_ns))), 1.0)), 1) if len(film.stamps_ns) > 1 else 1
    return [film.frames[row] for row in rows[::step]]


def _titled(picture: NDArray[np.uint8], title: str) -> Image.Image:
    sheet = Image.new("RGB", (_SIDE, _SIDE + _TITLE), (20, 20, 20))
    sheet.paste(ImageOps.fit(Image.fromarray(picture), (_SIDE, _SIDE)), (0, _TITLE))
    ImageDraw.Draw(sheet).multiline_text((3, 1), title, fill=(255, 255, 255), spacing=2)
    return sheet
