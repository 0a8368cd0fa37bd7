"""Films of what was found: the best clips one behind the other as MP4, or one below the other as a sheet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageOps

from rl_core.training.video import write_mp4
from robot_bridge.auxiliary.video.clip_index import Hit
from robot_bridge.auxiliary.video.errors import VideoError
from robot_bridge.auxiliary.video.recordings import films

_SIDE, _TITLE, _SHOWN = 192, 18, 8
_FPS, _FILM_FPS = 4.0, 8.0


def write_hit_video(hits: Sequence[Hit], file: Path) -> Path:
    """Writes the hits as MP4, best first, each with its rank, score and source, at twice the time of its pictures."""

    def frames() -> Iterator[NDArray[np.uint8]]:
        for rank, hit in enumerate(hits, 1):
            for picture in hit_frames(hit):
                yield np.asarray(_titled(picture, f"{rank}. {hit.score:.2f} {hit.source.name} {hit.episode}"))

    return write_mp4(file, frames(), _FILM_FPS)


def write_hit_sheet(hits: Sequence[Hit], file: Path) -> Path:
    """Writes the hits as one PNG, a row each with eight of its pictures."""
    rows = []
    for rank, hit in enumerate(hits, 1):
        pictures = hit_frames(hit)
        picked = [pictures[index] for index in np.linspace(0, len(pictures) - 1, _SHOWN).astype(int)]
        titles = [f"{rank}. {hit.score:.2f} {hit.source.name} {hit.episode}", *[""] * (_SHOWN - 1)]
        rows.append(np.concatenate([np.asarray(_titled(p, title)) for p, title in zip(picked, titles, strict=True)], axis=1))
    Image.fromarray(np.concatenate(rows)).save(file)
    return file


def hit_frames(hit: Hit) -> list[NDArray[np.uint8]]:
    """The pictures of a hit, some four a second, read from its recording again.

    Raises:
        VideoError: the recording has none of that camera and time any more.
    """
    for film in films(hit.source, round(1e9 / _FPS)):
        if (film.episode, film.camera) == (hit.episode, hit.camera):
            rows = np.flatnonzero((film.stamps_ns >= hit.start_ns) & (film.stamps_ns <= hit.end_ns))
            step = max(round(1e9 / _FPS / max(float(np.median(np.diff(film.stamps_ns))), 1.0)), 1) if len(film.stamps_ns) > 1 else 1
            if len(rows):
                return [film.frames[row] for row in rows[::step]]
    raise VideoError(f"{hit.source}: no pictures of {hit.camera} from {hit.start_ns} to {hit.end_ns} ns any more; index it again")


def _titled(picture: NDArray[np.uint8], title: str) -> Image.Image:
    sheet = Image.new("RGB", (_SIDE, _SIDE + _TITLE), (20, 20, 20))
    sheet.paste(ImageOps.fit(Image.fromarray(picture), (_SIDE, _SIDE)), (0, _TITLE))
    ImageDraw.Draw(sheet).text((3, 3), title, fill=(255, 255, 255))
    return sheet
