"""ClipIndex: the clips of recordings as vectors, worked out once and kept on disk.

    FOLDER/<sha256 of bundle, recording and rate>.npz     vectors (n, d) float32, start_ns, end_ns (n,), episodes and cameras (n,) text;
                                                          damage and unsearched (lines of text), see `film.Unread`
    FOLDER/known.json                                     recording -> what its files looked like, and their sha256

An entry belongs to the bytes of a recording and of the bundle: a file that changed, and another bundle, have entries of their own. The
folder is disposable.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rl_core.data.atomic import remove_stale_parts, write_atomically
from rl_core.errors import ArmstackError
from robot_bridge.auxiliary.video.errors import VideoError
from robot_bridge.auxiliary.video.film import Unread
from robot_bridge.auxiliary.video.ranking import best
from robot_bridge.auxiliary.video.recordings import content_hash, files_of, films, is_bag
from robot_bridge.auxiliary.video.windows import clip_of, windows

KNOWN = "known.json"
_CLIPS, _LINES = ("vectors", "start_ns", "end_ns", "episodes", "cameras"), ("damage", "unsearched")
_OVERSAMPLED = 4
"""Of a bag, so many more pictures a second are read than a clip takes: a short film becomes one clip of more of them."""
Arrays = dict[str, NDArray[Any]]


class ClipVectors(Protocol):
    """What clips become vectors through: `tempme.ClipSearcher`."""

    def clip_vector(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Unit vector (d,) of a clip (F, H, W, 3)."""
        ...

    def text_vector(self, text: str) -> NDArray[np.float32]:
        """Unit vector (d,) of a sentence."""
        ...


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A clip that was found.

    Attributes:
        source: recording.
        episode: name in there; of a bag its number, empty where there is one alone.
        camera: channel or topic.
        start_ns, end_ns: stamps of its first and last frame.
        score: cosine with the sentence.
    """

    source: Path
    episode: str
    camera: str
    start_ns: int
    end_ns: int
    score: float


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What became of a recording.

    Attributes:
        clips: of it.
        new: whether they were worked out now.
        damage: what of it could not be read, a line each; the clips are of the rest.
        unsearched: topics of a kind that is not searched, a line each.
    """

    clips: int
    new: bool
    damage: tuple[str, ...]
    unsearched: tuple[str, ...]


class ClipIndex:
    """Vectors of recordings under one bundle.

    Args:
        folder: where they are kept; made if needed.
        searcher: gives the vectors.
        bundle: sha256 of its bundle.
        frames: of a clip.
        fps: frames a second of a long recording.
    """

    def __init__(self, folder: Path, searcher: ClipVectors, bundle: str, *, frames: int, fps: float) -> None:
        self._folder, self._searcher, self._bundle, self._frames, self._fps = folder, searcher, bundle, frames, fps
        folder.mkdir(parents=True, exist_ok=True)
        remove_stale_parts(folder)
        self._known: dict[str, Any] = _read_known(folder / KNOWN)
        self._sources: list[Path] = []
        self._arrays: list[Arrays] = []

    def __len__(self) -> int:
        return sum(len(arrays["vectors"]) for arrays in self._arrays)

    def add(
        self,
        recordings: Sequence[Path],
        done: Callable[[Path, Taken], None],
        failed: Callable[[Path, str], None],
    ) -> None:
        """Takes recordings in; what is known is read from disk. One that cannot be read is left out.

        Args:
            recordings: of `recordings.find_recordings`.
            done: told each recording that was taken in, now and at every later time.
            failed: told each of which nothing could be read, and why.
        """
        for recording in recordings:
            try:
                file = self._folder / f"{self._key(recording)}.npz"
                arrays = _read(file)
                if new := arrays is None:
                    arrays = self._work_out(recording)
            except ArmstackError as error:
                failed(recording, str(error))
                continue
            if new:
                with write_atomically(file) as target:
                    np.savez(target, **arrays)  # type: ignore[arg-type]
            assert arrays is not None
            if len(arrays["vectors"]):
                self._sources.append(recording)
                self._arrays.append(arrays)
            damage, unsearched = (tuple(map(str, arrays[name])) for name in _LINES)
            done(recording, Taken(clips=len(arrays["vectors"]), new=new, damage=damage, unsearched=unsearched))

    def find(self, text: str, top: int) -> list[Hit]:
        """The `top` clips that the sentence fits best, best first.

        Raises:
            VideoError: an empty sentence, no clips, or `top` below 1.
        """
        if not text.strip() or top < 1:
            raise VideoError(f"text {text!r}, top {top}; valid: what happened, in words, and 1 or more")
        vectors = np.concatenate([arrays["vectors"] for arrays in self._arrays]) if self._arrays else np.zeros((0, 1), np.float32)
        if not len(vectors):
            raise VideoError("no clips: none of the recordings has pictures; valid: bags with Image topics, datasets with image channels")
        owner = np.repeat(np.arange(len(self._arrays)), [len(arrays["vectors"]) for arrays in self._arrays])
        first = np.searchsorted(owner, np.arange(len(self._arrays)))
        return [
            self._hit(int(owner[row]), row - int(first[owner[row]]), score)
            for row, score in best(vectors, self._searcher.text_vector(text), top)
        ]

    def _hit(self, number: int, row: int, score: float) -> Hit:
        arrays = self._arrays[number]
        return Hit(
            source=self._sources[number], episode=str(arrays["episodes"][row]), camera=str(arrays["cameras"][row]),
            start_ns=int(arrays["start_ns"][row]), end_ns=int(arrays["end_ns"][row]), score=score,
        )  # fmt: skip

    def _work_out(self, recording: Path) -> Arrays:
        found: list[tuple[NDArray[np.float32], int, int, str, str]] = []
        unread = Unread()
        for film in films(recording, round(1e9 / (self._fps * _OVERSAMPLED)), unread):
            for window in windows(film.stamps_ns, frames=self._frames, fps=self._fps):
                ends = int(film.stamps_ns[window.rows[0]]), int(film.stamps_ns[window.rows[-1]])
                found.append((self._searcher.clip_vector(clip_of(film, window)), *ends, film.episode, film.camera))
        vectors, starts, ends_ns, episodes, cameras = zip(*found, strict=True) if found else ((), (), (), (), ())
        return {
            "vectors": np.stack(vectors) if vectors else np.zeros((0, 1), np.float32),
            "start_ns": np.array(starts, np.int64), "end_ns": np.array(ends_ns, np.int64),
            "episodes": np.array(episodes, np.str_), "cameras": np.array(cameras, np.str_),
            **{name: np.array(getattr(unread, name), np.str_) for name in _LINES},
        }  # fmt: skip

    def _key(self, recording: Path) -> str:
        # Equal bytes may be read in two ways: what is empty has the format of its name.
        facts = [self._bundle, self._content(recording), is_bag(recording), self._frames, self._fps]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    def _content(self, recording: Path) -> str:
        """The recording's hash; its bytes are read again only when a file's size or time of change is another."""
        place = str(recording.resolve())
        known = self._known.get(place)
        try:
            looks = [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files_of(recording)]
            if isinstance(known, dict) and known.get("looks") == looks and isinstance(known.get("sha256"), str):
                return str(known["sha256"])
            self._known[place] = {"looks": looks, "sha256": content_hash(recording)}
        except OSError as error:
            raise VideoError(f"{error.filename or recording}: cannot be read: {error.strerror}") from error
        with write_atomically(self._folder / KNOWN) as file:
            file.write(json.dumps(self._known).encode())
        return str(self._known[place]["sha256"])


def _read_known(file: Path) -> dict[str, Any]:
    try:
        known = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _read(file: Path) -> Arrays | None:
    """An entry; None where there is none, or a damaged one."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in (*_CLIPS, *_LINES)}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None
    return found if len({len(found[name]) for name in _CLIPS}) == 1 else None
