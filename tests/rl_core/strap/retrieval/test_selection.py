import dataclasses
import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from rl_core.contract import ContractMismatch
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.formats import read_dataset, write_dataset
from rl_core.data.training_data import require_trainable
from rl_core.strap.embedding import Embedding
from rl_core.strap.indexing import build_index
from rl_core.strap.pieces import cut, write_retrieved
from rl_core.strap.sdtw import RetrievalError
from rl_core.strap.search import Match
from rl_core.strap.selection import Piece, Segment, matches_needed, select
from tests.rl_core.strap.retrieval.demos import CONTRACT, A, B, C, corpus, demo, target

STATE = Embedding(features="state")


def found(segments: int, matches: int) -> list[list[Match]]:
    return [[Match(cost=float(m), trajectory=m, start=0, stop=20) for m in range(matches)] for _ in range(segments)]


@pytest.mark.parametrize(("total", "segments", "share"), [(100, 7, 14), (100, 100, 1), (100, 30, 3), (10, 25, 1)])
def test_every_segment_contributes_equally(total, segments, share) -> None:
    pieces = select(found(segments, 40), total)
    assert len(pieces) == share * segments
    assert np.bincount([piece.segment for piece in pieces]).tolist() == [share] * segments
    assert matches_needed(total, segments, unique=False) == share
    assert all([p.cost for p in pieces if p.segment == s] == list(range(share)) for s in range(segments))


def test_a_piece_that_is_popular_comes_several_times_unless_each_may_come_once() -> None:
    matches = found(3, 9)
    assert [piece.trajectory for piece in select(matches, 6)] == [0, 1] * 3
    needed = matches_needed(6, 3, unique=True)
    unique = select([each[:needed] for each in matches], 6, unique=True)
    assert [piece.trajectory for piece in unique] == [0, 1, 2, 3, 4, 5]
    apart = [[Match(cost=0.0, trajectory=0, start=0, stop=20)], [Match(cost=0.0, trajectory=0, start=11, stop=31)]]
    assert len(select(apart, 2, unique=True)) == 2


def test_nothing_to_share_is_refused() -> None:
    with pytest.raises(RetrievalError, match="0 pieces for 2 segments"):
        select(found(2, 3), 0)


def test_a_piece_has_its_context_and_repeats_rows_at_the_ends() -> None:
    episode = demo(np.array([A, B]), uuid="one", lang="go")
    inside = cut(episode, 8, 15)
    np.testing.assert_array_equal(inside.actions, episode.actions[3:20])
    np.testing.assert_array_equal(inside.observations["eef_pos"], episode.observations["eef_pos"][3:21])
    np.testing.assert_array_equal(inside.stamps_ns, episode.stamps_ns[3:21])
    whole = cut(episode, 0, len(episode))
    assert len(whole) == len(episode) + 10
    np.testing.assert_array_equal(whole.actions[:6], np.repeat(episode.actions[:1], 6, axis=0))
    np.testing.assert_array_equal(whole.actions[-6:], np.repeat(episode.actions[-1:], 6, axis=0))
    np.testing.assert_array_equal(whole.observations["eef_pos"][-1], episode.observations["eef_pos"][-1])
    require_trainable(Dataset(contract=CONTRACT, episodes=(inside, whole)))
    with pytest.raises(DatasetError, match=r"steps 20\.\.25, valid: within 0\.\.24"):
        cut(episode, 20, 25)


def test_file_opens_in_robomimics_layout_and_keeps_instructions_and_places(tmp_path: Path) -> None:
    wanted = target()
    write_dataset(corpus(), tmp_path / "prior.hdf5")
    index, _ = build_index([tmp_path / "prior.hdf5"], tmp_path / "index", STATE)
    pieces = [Piece(trajectory=4, start=2, stop=30, cost=1.5, segment=1), Piece(trajectory=0, start=0, stop=20, cost=2.0, segment=0)]
    segments = [Segment(demo=0, start=0, stop=24), Segment(demo=1, start=24, stop=48)]
    write_retrieved(tmp_path / "out.hdf5", pieces, index, wanted, segments)

    with h5py.File(tmp_path / "out.hdf5") as file:
        data = file["data"]
        assert {name: data[name].attrs["num_samples"] for name in data} == {"demo_0": 38, "demo_1": 30, "demo_2": 48, "demo_3": 48}
        assert data.attrs["total"] == 38 + 30 + 96
        said = [json.loads(data[f"demo_{i}"].attrs["ep_meta"])["lang"] for i in range(4)]
        assert said == ["go b c d", "go a b c", "go c d a", "go c d a"]
        assert data["demo_0/obs/front"].shape == (38, 24, 24, 3) and data["demo_0/actions"].shape == (38, 3)
        masks = {name: [each.decode() for each in file[f"mask/{name}"]] for name in file["mask"]}
        assert masks["retrieved"] == masks["demos"] == ["demo_0", "demo_1"] and masks["all"] == [f"demo_{i}" for i in range(4)]

    read = read_dataset(tmp_path / "out.hdf5")
    require_trainable(read)
    assert read.contract == wanted.contract
    first = read.episodes[0]
    assert first.meta["retrieved"] == {
        "source": str(tmp_path / "prior.hdf5"),
        "demo": "demo_4",
        "uuid": "prior-4",
        "start": 2,
        "stop": 30,
        "cost": 1.5,
        "context": 5,
        "segment": {"target": "target-1", "start": 24, "stop": 48},
    }
    assert "primitives" not in first.meta and "retrieved" not in read.episodes[2].meta
    np.testing.assert_array_equal(first.actions[5:-5], corpus().episodes[4].actions[2:30])
    assert [episode.uuid for episode in read.episodes[2:]] == ["target-0", "target-1"]


def test_a_corpus_of_other_numbers_is_refused(tmp_path: Path) -> None:
    other = dataclasses.replace(CONTRACT, action=dataclasses.replace(CONTRACT.action, scale=(0.1,) * 3))
    other = dataclasses.replace(other, observation=(dataclasses.replace(CONTRACT.observation[0], frame="world"), *CONTRACT.observation[1:]))
    write_dataset(dataclasses.replace(corpus(), contract=other), tmp_path / "prior.hdf5")
    index, _ = build_index([tmp_path / "prior.hdf5"], tmp_path / "index", STATE)
    with pytest.raises(ContractMismatch, match="world"):
        write_retrieved(tmp_path / "out.hdf5", [Piece(trajectory=0, start=0, stop=9, cost=0.0)], index, target(), [])
    assert not (tmp_path / "out.hdf5").exists()


def test_a_demonstration_that_changed_since_it_was_indexed_is_named(tmp_path: Path) -> None:
    write_dataset(corpus(), tmp_path / "prior.hdf5")
    index, _ = build_index([tmp_path / "prior.hdf5"], tmp_path / "index", STATE)
    write_dataset(Dataset(contract=CONTRACT, episodes=(demo(np.array([A, C]), uuid="new", lang="go"),)), tmp_path / "prior.hdf5")
    with pytest.raises(DatasetError, match="demo_0 changed since it was indexed: 24 steps"):
        write_retrieved(tmp_path / "out.hdf5", [Piece(trajectory=0, start=0, stop=9, cost=0.0)], index, target(), [])
    with pytest.raises(RetrievalError, match="changed since it was put into the index"):
        build_index([tmp_path / "prior.hdf5"], tmp_path / "index", STATE)
