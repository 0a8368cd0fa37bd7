"""Contexts and chunks: what a window holds, and that none crosses the cut of a piece."""

from __future__ import annotations

import numpy as np
import pytest

from rl_core.data.annotations import RETRIEVED
from rl_core.data.episode import Dataset, DatasetError
from rl_core.strap.chunk_windows import ChunkSampler
from tests.rl_core.strap.policy.told import CAMERA, CONTRACT, dataset, episode, with_camera

FROM_CORPUS = {RETRIEVED: {"source": "corpus.hdf5", "demo": "demo_3", "start": 20, "end": 30, "cost": 1.0}}


def sampler(data: Dataset, *, context: int = 5, chunk: int = 5, seed: int = 0, **options: object) -> ChunkSampler:
    return ChunkSampler(data, data.contract, context=context, chunk=chunk, batch_size=16, seed=seed, **options)  # type: ignore[arg-type]


def test_a_window_is_the_past_up_to_now_and_the_actions_from_now_on() -> None:
    source = sampler(dataset(episode(20)), context=3, chunk=2)
    batch = source.gather(np.array([7]))
    assert batch["observation"][0, :, 0].tolist() == [5, 6, 7]
    np.testing.assert_allclose(batch["action"][0], [[0.07, -0.07], [0.08, -0.08]], rtol=1e-6)
    assert batch["mask"].tolist() == [[1, 1]] and batch["terminal"].tolist() == [[0, 0]]


def test_a_whole_demonstration_is_padded_at_its_ends_as_at_run_time() -> None:
    source = sampler(dataset(episode(6)))
    assert len(source) == 6  # every step is the present one once
    first, last = source.gather(np.array([0])), source.gather(np.array([5]))
    assert first["observation"][0, :, 0].tolist() == [0, 0, 0, 0, 0] and first["mask"].tolist() == [[1, 1, 1, 1, 1]]
    assert last["observation"][0, :, 0].tolist() == [1, 2, 3, 4, 5]
    assert last["mask"].tolist() == [[1, 0, 0, 0, 0]] and last["terminal"][0, 0] == 1
    source = sampler(dataset(episode(2)))  # shorter than any window
    assert source.gather(np.array([1]))["observation"][0, :, 0].tolist() == [0, 0, 0, 0, 1]


def test_no_window_crosses_the_cut_of_a_piece_and_every_frame_that_was_matched_has_one() -> None:
    """Frames 20..29 were matched; the piece brings five frames along on each side, so nothing is padded."""
    piece = episode(20, first=15, uuid="piece", **FROM_CORPUS)
    other = episode(30, first=500, uuid="other")
    source = sampler(dataset(episode(30, first=200, uuid="before"), piece, other))
    batch = source.gather(np.arange(len(source)))
    x = batch["observation"][:, :, 0].numpy()
    actions = batch["action"][:, :, 0].numpy() * 100
    of_piece = (x < 100).any(1)
    assert (x[of_piece] >= 15).all() and (x[of_piece] <= 34).all()
    assert (actions[of_piece] > 14.9).all() and (actions[of_piece] < 34.1).all()
    assert (batch["mask"].numpy()[of_piece] == 1).all()
    assert (np.diff(x[of_piece], axis=1) == 1).all()  # no frame repeated
    assert set(range(20, 30)) <= set(x[of_piece][:, -1].astype(int))
    np.testing.assert_allclose(actions[of_piece][:, 0], x[of_piece][:, -1], rtol=1e-5)  # the first action is the present one's


def test_a_piece_at_the_border_of_its_trajectory_is_as_it_was_saved() -> None:
    """Its file repeats the first row; here that is data like any other."""
    piece = episode(14, uuid="piece", **FROM_CORPUS)
    source = sampler(dataset(piece))
    assert len(source) == 14 - 4 - 4
    with pytest.raises(DatasetError, match="no window of 5 observations and 5 actions in 1 episodes, the longest of 8 steps.* 9 steps"):
        sampler(dataset(episode(8, **FROM_CORPUS)))


def test_every_window_is_drawn_alike_so_pieces_and_demonstrations_mix_by_their_count() -> None:
    source = sampler(dataset(episode(10, first=0, uuid="a"), episode(38, first=100, uuid="b", **FROM_CORPUS)))
    assert len(source) == 10 + 30
    drawn = np.concatenate([source.next_batch()["observation"][:, -1, 0].numpy() for _ in range(200)])
    assert (drawn < 100).mean() == pytest.approx(0.25, abs=0.03)
    counts = np.unique(drawn, return_counts=True)[1]
    assert len(counts) == 40 and counts.min() > 40 and counts.max() < 125  # 80 each on average


def test_weights_of_episodes_count_and_a_resumed_source_goes_on() -> None:
    data = dataset(episode(10, uuid="a"), episode(10, first=100, uuid="b"))
    source = sampler(data, weights={"a": 0.0, "b": 1.0})
    assert (source.next_batch()["observation"][..., 0] >= 100).all()
    state = source.state_dict()
    expected = source.next_batch()
    again = sampler(data, weights={"a": 0.0, "b": 1.0}, seed=7)
    again.load_state_dict(state)
    found = again.next_batch()
    assert all((found[key] == expected[key]).all() for key in expected.keys())


def test_every_window_keeps_the_instruction_of_its_own_episode() -> None:
    data = dataset(
        episode(12, uuid="target", lang="put the cup left"),
        episode(20, first=100, uuid="p1", lang="open the drawer", **FROM_CORPUS),
        episode(20, first=200, uuid="p2", lang="lift the cube", **FROM_CORPUS),
    )
    batch = sampler(data).gather(np.arange(len(sampler(data))))
    texts = ["lift the cube", "open the drawer", "put the cup left"]
    for x, index in zip(batch["observation"][:, -1, 0].tolist(), batch["instruction"].tolist(), strict=True):
        assert texts[index] == ("put the cup left" if x < 100 else "open the drawer" if x < 200 else "lift the cube")


def test_pictures_come_with_the_context_as_bytes() -> None:
    data = with_camera(dataset(episode(12)))
    batch = sampler(data).gather(np.array([9]))
    frames = batch[CAMERA.name]
    assert frames.shape == (1, 5, 40, 72, 3) and str(frames.dtype) == "torch.uint8"
    assert [int(frame[0, :, 0].argmax()) for frame in frames[0]] == [10, 12, 14, 16, 18]
    assert batch["observation"].shape[-1] == CONTRACT.observation_size
