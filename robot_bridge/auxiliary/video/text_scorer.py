"""What narrows a corpus before pieces are retrieved from it: a number a frame, here how well a clip that holds it fits a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import RobotContract
from rl_core.data.episode import Episode
from rl_core.strap.corpus import demo_at, read_corpus_demo
from rl_core.strap.index import Index, Indexed
from robot_bridge.auxiliary.video.errors import VideoError
from robot_bridge.auxiliary.video.recordings import upright
from robot_bridge.auxiliary.video.tempme import ClipSearcher
from robot_bridge.auxiliary.video.windows import windows
from robot_bridge.auxiliary.vlm.feature_cache import FeatureCache, Features


class FrameScorer(Protocol):
    """Gives each of a film's frames a number, larger where there is more of what is wanted."""

    def score(self, frames: NDArray[np.uint8], period_s: float) -> NDArray[np.float32]:
        """(T,) of upright RGB frames (T, H, W, 3), which are `period_s` apart."""
        ...


class TextScorer:
    """Follows `FrameScorer`: the best cosine with a text over the clips that hold the frame.

    Args:
        searcher: gives vectors.
        bundle: sha256 of its bundle.
        text: what is wanted, in words.
        cache: folder where vectors of clips are kept; None keeps none.
    """

    def __init__(self, searcher: ClipSearcher, bundle: str, text: str, cache: Path | None = None) -> None:
        self._text = searcher.text_vector(text)
        self._frames, self._fps = searcher.config.frames, searcher.config.fps

        def encode(clips: NDArray[np.uint8]) -> Features:
            return {"clip": np.stack([searcher.clip_vector(clip) for clip in clips])}

        self._vectors = FeatureCache(cache, f"clips {bundle}", encode)

    def score(self, frames: NDArray[np.uint8], period_s: float) -> NDArray[np.float32]:
        """See `FrameScorer`."""
        scores = np.full(len(frames), -1.0, np.float32)
        stamps_ns = (np.arange(len(frames)) * period_s * 1e9).astype(np.int64)
        for window in windows(stamps_ns, frames=self._frames, fps=self._fps):
            clip = frames[list(window.rows)]
            cosine = float(self._vectors.features(clip[None])["clip"][0] @ self._text)
            held = slice(0, len(frames)) if len(frames) <= self._frames else slice(window.rows[0], window.rows[-1] + 1)
            scores[held] = np.maximum(scores[held], cosine)
        return scores


class NarrowedIndex(Index):
    """Some trajectories of an index, numbered anew.

    Args:
        whole: the index.
        rows: which of its trajectories, rising.
    """

    def __init__(self, whole: Index, rows: Sequence[int]) -> None:
        self._whole, self._rows = whole, list(rows)
        self.folder, self.size, self.embedder = whole.folder, whole.size, whole.embedder
        self.trajectories = [whole.trajectories[row] for row in rows]
        self.lengths = whole.lengths[self._rows]

    def block(self, first: int, last: int) -> NDArray[np.float16]:
        """See `Index.block`."""
        blocks = [self._whole.block(row, row + 1) for row in self._rows[first:last]]
        return np.concatenate(blocks) if blocks else np.empty((0, self.size), np.float16)


def narrow(
    index: Index, scorer: FrameScorer, share: float, done: Callable[[int], None] = lambda count: None
) -> tuple[NarrowedIndex, NDArray[np.float32]]:
    """The trajectories whose best frame scores highest, and the scores (n,) of all of them.

    Args:
        index: of the corpus.
        scorer: see `FrameScorer`.
        share: of the trajectories that stay; at least one does.
        done: told after each trajectory.

    Raises:
        VideoError: a share that cannot be, or a demonstration without pictures.
    """
    if not 0 < share <= 1:
        raise VideoError(f"share {share}, valid: above 0, at most 1")
    scores = np.empty(len(index), np.float32)
    for row, trajectory in enumerate(index.trajectories):
        frames, period_s = _film(trajectory)
        scores[row] = scorer.score(frames, period_s).max()
        done(1)
    best = np.argsort(-scores, kind="stable")[: max(round(share * len(index)), 1)]
    return NarrowedIndex(index, sorted(best.tolist())), scores


def _film(trajectory: Indexed) -> tuple[NDArray[np.uint8], float]:
    """What the first camera saw, and seconds between two frames."""
    episode, contract = read_corpus_demo(demo_at(Path(trajectory.source), trajectory.demo))
    return _frames(episode, contract, f"{trajectory.source} {trajectory.demo}"), _period_s(episode)


def _frames(episode: Episode, contract: RobotContract, where: str) -> NDArray[np.uint8]:
    for channel in contract.observation:
        if channel.kind == "image" and channel.name in episode.observations:
            return upright(np.asarray(episode.observations[channel.name]), channel)
    raise VideoError(f"{where}: no image channel, channels: {sorted(episode.observations)}; a text is looked for in pictures")


def _period_s(episode: Episode) -> float:
    return max(float(episode.stamps_ns[-1] - episode.stamps_ns[0]) * 1e-9 / max(len(episode), 1), 1e-3)
