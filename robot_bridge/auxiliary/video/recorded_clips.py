"""Clips to train on: drawn ones, or one's own recordings whose episodes say in words what was done."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from robot_bridge.auxiliary.video.clips import HEADER, ClipData, read_shards
from robot_bridge.auxiliary.video.errors import VideoError
from robot_bridge.auxiliary.video.film import Film
from robot_bridge.auxiliary.video.recordings import films, find_recordings
from robot_bridge.auxiliary.video.windows import clip_of, windows

FRAMES, SIDE = 12, 128
"""Frames of a clip, and pixels of width and height."""


def read_clips(folder: str | Path) -> ClipData:
    """Clips of a folder: shards where it holds `clips.json`, else recordings.

    Of recordings each episode is one clip of its first camera, 12 frames evenly over its time, brought to 128 x 128 pixels; its sentence
    is the episode's task. Episodes without one are left out.

    Raises:
        VideoError: nothing there, no pictures, or no words.
        DatasetError: a recording cannot be read.
    """
    folder = Path(folder)
    if (folder / HEADER).is_file():
        return read_shards(folder)
    clips: list[NDArray[np.uint8]] = []
    sentences: list[str] = []
    wordless, seen = 0, set()
    for recording in find_recordings(folder):
        for film in films(recording):
            if (recording, film.episode) in seen:
                continue  # another camera of the same episode
            seen.add((recording, film.episode))
            if film.lang:
                clips.append(_whole(film))
                sentences.append(film.lang)
            else:
                wordless += 1
    if not clips:
        found = f"{wordless} films without words" if wordless else "recordings without pictures"
        raise VideoError(f"{folder}: {found}; valid: episodes with an image channel and meta.lang, what was done in words")
    lengths = np.array([len(clip) for clip in clips], np.int64)
    padded = [np.concatenate([clip, np.repeat(clip[-1:], FRAMES - len(clip), axis=0)]) for clip in clips]
    count = len(clips)
    return ClipData(
        frames=np.stack(padded), lengths=lengths, sentences=tuple((sentence,) for sentence in sentences), meanings=tuple(sentences),
        groups=np.arange(count), ordered=np.zeros(count, bool),
    )  # fmt: skip


def _whole(film: Film) -> NDArray[np.uint8]:
    """The film as one clip."""
    length_s = max(float(film.stamps_ns[-1] - film.stamps_ns[0]) * 1e-9, 1e-6)
    (window,) = windows(film.stamps_ns, frames=FRAMES, fps=0.999 * FRAMES / length_s)
    return np.stack([np.asarray(ImageOps.fit(Image.fromarray(frame), (SIDE, SIDE))) for frame in clip_of(film, window)])
