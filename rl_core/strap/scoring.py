"""How well a retrieval does, scored by the primitives that demonstrations are tagged with; tags are in no feature.

    agreement = share of retrieved frames whose tag is that of the target's frame they stand for

A piece that was retrieved for a segment is laid on it from end to end. A piece of a baseline, which knows no segments, stands frame by
frame for the target's frames that are nearest in features.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from rl_core.data.annotations import primitive_tags
from rl_core.data.episode import Dataset
from rl_core.strap.corpus import demo_at, read_corpus_demo
from rl_core.strap.embedding import Embedder
from rl_core.strap.index import Index
from rl_core.strap.retrieval import Retrieval
from rl_core.strap.selection import Piece, Segment

Tags = NDArray[np.str_]


def corpus_tags(index: Index) -> list[Tags]:
    """The tag of every frame of every trajectory of the index, (T,) each. Raises DatasetError where a demonstration has none."""
    episodes = (read_corpus_demo(demo_at(Path(known.source), known.demo))[0] for known in index.trajectories)
    return [np.array(primitive_tags(episode)) for episode in episodes]


def shuffled(tags: Sequence[Tags], rng: np.random.Generator) -> list[Tags]:
    """The same tags at other frames: what any retrieval agrees with by chance alone."""
    return np.split(rng.permutation(np.concatenate(tags)), np.cumsum([len(each) for each in tags])[:-1])


def random_pieces(pieces: Sequence[Piece], lengths: NDArray[np.int64], rng: np.random.Generator) -> tuple[Piece, ...]:
    """As many pieces, as long and for the same segments, from anywhere in a corpus of trajectories of these `lengths`."""
    drawn = []
    for piece in pieces:
        frames = piece.stop - piece.start
        trajectory = int(rng.choice(np.flatnonzero(lengths >= frames)))
        start = int(rng.integers(lengths[trajectory] - frames + 1))
        drawn.append(dataclasses.replace(piece, trajectory=trajectory, start=start, stop=start + frames))
    return tuple(drawn)


def tag_agreement(found: Retrieval, index: Index, target: Dataset, embedder: Embedder, tags: Sequence[Tags]) -> float:
    """The agreement, 0 to 1.

    Args:
        found: segments of `target`, and pieces of `index`.
        index: the corpus.
        target: its demonstrations, tagged.
        embedder: that of the index.
        tags: of the corpus' frames: `corpus_tags`.

    Raises:
        DatasetError: a demonstration of the target has no tags.
    """
    wanted = [np.array(primitive_tags(episode)) for episode in target.episodes]
    features = torch.from_numpy(np.concatenate([embedder.embed(episode, target.contract) for episode in target.episodes]))
    everything, agreeing = np.concatenate(wanted), []
    for piece in found.pieces:
        if piece.segment >= 0:
            stands_for = _laid(piece, found.segments[piece.segment], wanted)
        else:
            rows = index.block(piece.trajectory, piece.trajectory + 1)[piece.start : piece.stop]
            nearest = torch.cdist(torch.from_numpy(rows.astype(np.float32)), features).argmin(dim=1)
            stands_for = everything[nearest.numpy()]
        agreeing.append(tags[piece.trajectory][piece.start : piece.stop] == stands_for)
    return float(np.concatenate(agreeing).mean())


def _laid(piece: Piece, segment: Segment, wanted: Sequence[Tags]) -> Tags:
    places = np.linspace(segment.start, segment.stop - 1, piece.stop - piece.start)
    return wanted[segment.demo][np.rint(places).astype(int)]
