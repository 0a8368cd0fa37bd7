"""Retrieval scored by tags of primitives."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from rl_core.data.annotations import PRIMITIVES
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.formats import write_dataset
from rl_core.strap.embedding import Embedder, Embedding
from rl_core.strap.index import Index
from rl_core.strap.indexing import build_index
from rl_core.strap.retrieval import Retrieval, RetrievalPlan, retrieve
from rl_core.strap.scoring import corpus_tags, random_pieces, shuffled, tag_agreement
from rl_core.strap.selection import Piece, Segment
from tests.rl_core.strap.retrieval import demos


def tagged(dataset: Dataset, *, halves: bool = True) -> Dataset:
    """Every demonstration has two halves, named by where they lead to; lang is `go FROM OVER TO`."""
    episodes = []
    for episode in dataset.episodes:
        _, start, middle, end = str(episode.meta["lang"]).split()
        count = len(episode)
        runs = [[f"{start}-{middle}", 0, count // 2], [f"{middle}-{end}", count // 2, count]]
        episodes.append(dataclasses.replace(episode, meta={**episode.meta, PRIMITIVES: runs if halves else None}))
    return dataclasses.replace(dataset, episodes=tuple(episodes))


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Index, Embedder]:
    folder: Path = tmp_path_factory.mktemp("scoring")
    write_dataset(tagged(demos.corpus()), folder / "prior.hdf5")
    return build_index([folder / "prior.hdf5"], folder / "index", Embedding(features="state", channels=("eef_pos",)))


def test_retrieved_pieces_agree_more_than_random_ones_and_shuffled_tags(indexed: tuple[Index, Embedder]) -> None:
    index, embedder = indexed
    target, tags, rng = tagged(demos.target()), corpus_tags(index), np.random.default_rng(0)
    found = retrieve(target, index, embedder, RetrievalPlan(pieces=16))
    assert tag_agreement(found, index, target, embedder, tags) > 0.8
    chance = tag_agreement(found, index, target, embedder, shuffled(tags, rng))
    anywhere = Retrieval(segments=found.segments, pieces=random_pieces(found.pieces, index.lengths, rng))
    assert chance < 0.5
    assert tag_agreement(anywhere, index, target, embedder, tags) < 0.5


def test_a_piece_of_no_segment_stands_for_the_nearest_frames(indexed: tuple[Index, Embedder]) -> None:
    index, embedder = indexed
    target, tags = tagged(demos.target()), corpus_tags(index)
    trajectory = next(number for number, known in enumerate(index.trajectories) if known.lang == "go b c d")
    length = int(index.lengths[trajectory])
    second_half = Piece(trajectory=trajectory, start=length // 2 + 2, stop=length, cost=0.0)
    assert tag_agreement(Retrieval(segments=(), pieces=(second_half,)), index, target, embedder, tags) > 0.8


def test_a_piece_is_laid_on_its_segment_from_end_to_end(indexed: tuple[Index, Embedder]) -> None:
    """All of a demonstration for a piece of equal order of tags, and for one of another order."""
    index, embedder = indexed
    target, tags = tagged(demos.target()), corpus_tags(index)
    steps = len(target.episodes[0])
    segments = (Segment(demo=0, start=0, stop=steps),)
    piece = Piece(trajectory=0, start=0, stop=int(index.lengths[0]), cost=0.0, segment=0)
    found = Retrieval(segments=segments, pieces=(piece,))
    half = [np.where(np.arange(len(each)) < len(each) // 2, "c-d", "d-a") for each in tags]
    assert tag_agreement(found, index, target, embedder, half) == pytest.approx(1.0, abs=0.05)
    assert tag_agreement(found, index, target, embedder, [each[::-1] for each in half]) == pytest.approx(0.0, abs=0.05)


def test_shuffled_tags_are_the_same_tags() -> None:
    tags = [np.array(["a", "a", "b"]), np.array(["c"])]
    mixed = shuffled(tags, np.random.default_rng(1))
    assert [len(each) for each in mixed] == [3, 1] and sorted(np.concatenate(mixed)) == ["a", "a", "b", "c"]


def test_random_pieces_lie_inside_and_are_as_long() -> None:
    pieces = [Piece(trajectory=0, start=2, stop=12, cost=1.0, segment=3)] * 50
    lengths = np.array([12, 5, 10])
    drawn = random_pieces(pieces, lengths, np.random.default_rng(2))
    assert {piece.trajectory for piece in drawn} == {0, 2}
    assert all(piece.stop - piece.start == 10 and 0 <= piece.start and piece.stop <= lengths[piece.trajectory] for piece in drawn)
    assert {piece.segment for piece in drawn} == {3}


def test_demonstrations_without_tags_are_refused(indexed: tuple[Index, Embedder]) -> None:
    index, embedder = indexed
    found = retrieve(demos.target(), index, embedder, RetrievalPlan(pieces=4))
    with pytest.raises(DatasetError, match="meta.primitives"):
        tag_agreement(found, index, tagged(demos.target(), halves=False), embedder, corpus_tags(index))
