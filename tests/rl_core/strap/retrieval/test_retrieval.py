import copy
import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.formats import write_dataset
from rl_core.strap.embedding import Embedder, Embedding
from rl_core.strap.frame_retrieval import full_trajectories, nearest_runs
from rl_core.strap.index import Index
from rl_core.strap.indexing import build_index
from rl_core.strap.latents import optical_flow, train_vae
from rl_core.strap.retrieval import RetrievalPlan, retrieve
from rl_core.strap.sdtw import RetrievalError
from rl_core.strap.search import InMemory
from tests.rl_core.strap.retrieval.demos import corpus, target

STATE = Embedding(features="state", channels=("eef_pos",))


@pytest.fixture(scope="module")
def indexed(tmp_path_factory) -> tuple[Index, Embedder]:
    folder = tmp_path_factory.mktemp("retrieval")
    write_dataset(corpus(), folder / "prior.hdf5")
    return build_index([folder / "prior.hdf5"], folder / "index", STATE)


def test_pieces_of_other_tasks_serve_a_new_composition(indexed) -> None:
    """C-D-A is nowhere in the corpus: C-D is the second half of one task, D-A the first half of another."""
    found = retrieve(target(), *indexed, RetrievalPlan(pieces=16))
    assert len(found.segments) == 4 and len(found.pieces) == 16
    index = indexed[0]
    for piece in found.pieces:
        first_half = found.segments[piece.segment].start == 0
        assert index.trajectories[piece.trajectory].lang == ("go b c d" if first_half else "go d a b")
        half = index.lengths[piece.trajectory] / 2
        middle = (piece.start + piece.stop) / 2
        assert (middle > half) == first_half
    whole = retrieve(target(), *indexed, RetrievalPlan(pieces=16, retriever="full-trajectory"))
    assert all(piece.stop == index.lengths[piece.trajectory] for piece in whole.pieces)


@pytest.mark.parametrize("retriever", ["single-state", "full-trajectory", "behavior", "flow"])
def test_baselines_retrieve_about_as_many_frames(indexed, retriever, monkeypatch) -> None:
    monkeypatch.setattr("rl_core.strap.latents._UPDATES", 30)
    plan = RetrievalPlan(pieces=8, retriever=retriever)
    found = retrieve(target(), *indexed, plan)
    frames = sum(piece.stop - piece.start for piece in found.pieces)
    wanted = 8 * sum(segment.stop - segment.start for segment in found.segments) // len(found.segments)
    assert wanted <= frames <= wanted + (max(indexed[0].lengths) if retriever == "full-trajectory" else 0)
    assert retrieve(target(), *indexed, plan) == found


def test_target_demonstrations_in_the_corpus_are_refused(indexed) -> None:
    leaked = Dataset(contract=target().contract, episodes=(*target().episodes, corpus().episodes[2]))
    with pytest.raises(RetrievalError, match="1 target demonstrations are in the corpus too, e.g. .*prior.hdf5 demo_2"):
        retrieve(leaked, *indexed, RetrievalPlan())


def test_the_targets_instruction_in_the_corpus_is_a_warning(indexed, caplog) -> None:
    same = dataclasses.replace(target(), episodes=[dataclasses.replace(e, meta={"lang": "go a b c"}) for e in target().episodes])
    retrieve(same, *indexed, RetrievalPlan(pieces=4))
    assert "4 demonstrations of the corpus have the target's instruction" in caplog.text


def test_a_corpus_too_short_to_match_is_named(tmp_path: Path) -> None:
    short = [dataclasses.replace(e, **_first_steps(e, 5)) for e in corpus().episodes]
    write_dataset(dataclasses.replace(corpus(), episodes=tuple(short)), tmp_path / "prior.hdf5")
    index, embedder = build_index([tmp_path / "prior.hdf5"], tmp_path / "index", STATE)
    with pytest.raises(RetrievalError, match="12 trajectories of up to 5 frames, segments of 2. or more"):
        retrieve(target(), index, embedder, RetrievalPlan())


def _first_steps(episode, steps: int) -> dict:
    return {
        "observations": {name: values[: steps + 1] for name, values in episode.observations.items()},
        "actions": episode.actions[:steps],
        "rewards": episode.rewards[:steps],
        "stamps_ns": episode.stamps_ns[: steps + 1],
    }


def test_single_frames_are_the_nearest_ones_in_runs() -> None:
    prior = InMemory([np.arange(10.0)[:, None], np.arange(100.0, 110.0)[:, None]])
    wanted = [np.array([[3.1], [4.0], [4.9], [107.0]])]
    pieces = nearest_runs(wanted, prior, 4)
    assert [(piece.trajectory, piece.start, piece.stop) for piece in pieces] == [(0, 3, 6), (1, 7, 8)]
    assert pieces[1].cost == pytest.approx(0, abs=1e-3)


def test_whole_trajectories_are_ranked_by_dtw_over_all_their_frames() -> None:
    ramp = np.linspace(0, 1, 20)[:, None]
    prior = InMemory([ramp + 5, np.repeat(ramp, 2, axis=0), ramp[::-1]])
    pieces = full_trajectories([ramp], prior, 45)
    assert [piece.trajectory for piece in pieces] == [1, 2] and pieces[0].cost == pytest.approx(0, abs=1e-3)


def test_flow_points_where_the_picture_moves() -> None:
    frames = np.zeros((5, 64, 64, 3), np.uint8)
    rng = np.random.default_rng(0)
    texture = rng.integers(60, 255, (24, 24, 3), dtype=np.uint8)
    for t in range(5):
        frames[t, 20:44, 8 + 4 * t : 32 + 4 * t] = texture
    flow = optical_flow(frames).reshape(4, 32, 32, 2)
    moving = np.abs(flow).sum(axis=-1) > 0.5
    assert moving.any() and flow[moving][:, 0].mean() > 0.5 and abs(flow[moving][:, 1].mean()) < 0.5


def test_latents_keep_apart_what_differs() -> None:
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(np.concatenate([rng.normal(-1, 0.1, (200, 8)), rng.normal(1, 0.1, (200, 8))]).astype(np.float32))
    model = train_vae(rows, seed=0, updates=150)
    with torch.no_grad():
        left, right = model.encode(rows)[0].split(200)
    assert (left.mean(0) - right.mean(0)).norm() > 3 * left.std(0).norm()
    again = train_vae(rows, seed=0, updates=150)
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values(), strict=True))


def test_a_number_that_is_none_is_named_by_episode_field_and_step(indexed) -> None:
    wrong = copy.deepcopy(target())
    name = next(iter(wrong.episodes[1].observations))
    wrong.episodes[1].observations[name][3] = np.nan
    with pytest.raises(DatasetError, match=rf"episode 1 .*{name}' is not finite at step 3"):
        retrieve(wrong, *indexed, RetrievalPlan(pieces=16))
