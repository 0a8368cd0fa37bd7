"""A page that shows what was retrieved: each segment of the target as a film strip, beside its best matches and their costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rl_core.contract import Channel, RobotContract
from rl_core.data.episode import Dataset, Episode
from rl_core.strap.corpus import demo_at, read_corpus_demo
from rl_core.strap.index import Index
from rl_core.strap.retrieval import Retrieval
from rl_core.strap.selection import Piece
from robot_bridge.pages import figure_uri, film_strip_uri, render_page

_SHOWN = 4
"""Matches of a segment."""
_HEIGHT = 96


def write_retrieval_page(file: Path, found: Retrieval, index: Index, target: Dataset, *, name: str) -> Path:
    """Writes the page to `file`; `name` is what the target is called in its title."""
    groups = []
    for number, segment in enumerate(found.segments):
        pieces = sorted((piece for piece in found.pieces if piece.segment == number), key=lambda piece: piece.cost)
        if pieces:
            episode = target.episodes[segment.demo]
            about = f"demonstration {segment.demo}, frames {segment.start} to {segment.stop - 1}"
            shown = _view(episode, target.contract, segment.start, segment.stop)
            groups.append({"title": f"Segment {number}", "about": about, **shown, "matches": _matches(pieces, index)})
    alone = [piece for piece in found.pieces if piece.segment < 0]
    if alone:  # of a baseline, which knows no segments
        longest = sorted(alone, key=lambda piece: piece.start - piece.stop)
        episode = target.episodes[0]
        shown = _view(episode, target.contract, 0, len(episode))
        groups.append({"title": "Target", "about": "first demonstration; the longest pieces", **shown, "matches": _matches(longest, index)})
    lengths = np.array([piece.stop - piece.start for piece in found.pieces])
    return render_page(
        "retrieval.html",
        file,
        title=f"Retrieved for {name}",
        subtitle=f"{len(found.pieces)} pieces for {len(found.segments)} segments, out of {len(index)} demonstrations",
        groups=groups,
        tasks=_tasks(found, index),
        lengths=_histogram(lengths),
    )


def _matches(pieces: list[Piece], index: Index) -> list[dict[str, Any]]:
    rows = []
    for piece in pieces[:_SHOWN]:
        known = index.trajectories[piece.trajectory]
        episode, contract = read_corpus_demo(demo_at(Path(known.source), known.demo))
        about = f"{Path(known.source).name} {known.demo}, frames {piece.start} to {piece.stop - 1}"
        rows.append({"cost": piece.cost, "lang": known.lang, "about": about, **_view(episode, contract, piece.start, piece.stop)})
    return rows


def _view(episode: Episode, contract: RobotContract, start: int, stop: int) -> dict[str, str]:
    cameras = [channel for channel in contract.observation if channel.kind == "image" and channel.name in episode.observations]
    uri = _strip(episode, cameras[0], start, stop) if cameras else _drawing(episode, contract, start, stop)
    return {"uri": uri, "words": str(episode.meta.get("lang", ""))}


def _strip(episode: Episode, camera: Channel, start: int, stop: int) -> str:
    frames: NDArray[Any] = np.asarray(episode.observations[camera.name])[start:stop]
    step = max(1, frames.shape[1] // _HEIGHT)
    frames = frames[:, ::step, ::step]
    return film_strip_uri(frames[:, ::-1] if camera.row_order == "bottom_up" else frames)


def _drawing(episode: Episode, contract: RobotContract, start: int, stop: int) -> str:
    """Without a camera: the low-dimensional channels over time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(8, 1))
    axis = figure.add_axes((0, 0, 1, 1))  # no ticks: they take matplotlib longer than the curves
    axis.set_axis_off()
    axis.plot(np.arange(start, stop), episode.flat_observation(contract)[start:stop], linewidth=0.8)
    return figure_uri(figure)


def _tasks(found: Retrieval, index: Index) -> list[dict[str, Any]]:
    """Of which tasks the pieces are, most frequent first."""
    counted: dict[str, list[int]] = {}
    for piece in found.pieces:
        counted.setdefault(index.trajectories[piece.trajectory].lang or "without an instruction", []).append(piece.stop - piece.start)
    rows = [{"lang": lang, "pieces": len(lengths), "frames": sum(lengths)} for lang, lengths in counted.items()]
    return sorted(rows, key=lambda row: -row["pieces"])


def _histogram(lengths: NDArray[np.int64]) -> str:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(8, 2), constrained_layout=True)
    axis.hist(lengths, bins=30, color="#3b6ea5")
    axis.set_xlabel("frames of a piece")
    axis.set_ylabel("pieces")
    return figure_uri(figure)
