from dataclasses import replace

import numpy as np
import pytest
import torch

from rl_core.contract import Channel
from rl_core.data.episode import Dataset, DatasetError
from rl_core.data.frame_store import MAX_FRAMES, FrameStore
from rl_core.data.replay import ReplayBuffer

SHAPE = (6, 8, 3)


def pictures(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, *SHAPE), dtype=np.uint8)


def test_pictures_are_addressed_through_a_replay_and_stored_once(tmp_path, contract, make_episode):
    camera = Channel(name="camera", kind="image", shape=SHAPE, encoding="rgb8", row_order="top_down")
    with_camera = replace(contract, observation=(*contract.observation, camera))
    episodes = []
    for seed, steps in enumerate((4, 7)):
        episode = make_episode(seed, steps)
        episodes.append(replace(episode, observations={**episode.observations, "camera": pictures(steps + 1, seed)}))
    dataset = Dataset(contract=with_camera, episodes=tuple(episodes))
    store, before, after = FrameStore.from_dataset(tmp_path, dataset, "camera")
    assert len(store) == 5 + 8  # one more than steps an episode, not two a step
    replay = ReplayBuffer(11, {"reward": 1, "frame": 0, "next_frame": 0})
    replay.extend({"reward": np.zeros(11), "frame": before, "next_frame": after})
    batch = replay.gather(np.array([0, 3, 4, 10]))
    frames, following = store.gather(batch["frame"]), store.gather(batch["next_frame"])
    assert frames.dtype == torch.uint8 and frames.shape == (4, *SHAPE)
    cameras = [episode.observations["camera"] for episode in episodes]
    for row, (e, t) in enumerate([(0, 0), (0, 3), (1, 0), (1, 6)]):
        np.testing.assert_array_equal(frames[row], cameras[e][t])
        np.testing.assert_array_equal(following[row], cameras[e][t + 1])


def test_store_reopens_where_it_was_flushed(tmp_path):
    store = FrameStore(tmp_path, SHAPE, 20)
    store.append(pictures(5))
    store.flush()
    store.append(pictures(3, 1))
    again = FrameStore(tmp_path, SHAPE, 20)
    assert len(again) == 5
    np.testing.assert_array_equal(again.gather([4, 0]).numpy(), pictures(5)[[4, 0]])
    assert again.append(pictures(2, 2)).tolist() == [5, 6]


def test_wrong_pictures_indices_and_sizes_are_named(tmp_path):
    store = FrameStore(tmp_path, SHAPE, 5)
    store.append(pictures(4))
    with pytest.raises(DatasetError, match="valid: 0..3"):
        store.gather([4])
    with pytest.raises(DatasetError, match="4 of 5 frames are there, 2 more don't fit"):
        store.append(pictures(2))
    with pytest.raises(DatasetError, match="float32.*valid: uint8"):
        store.append(pictures(1).astype(np.float32))
    with pytest.raises(DatasetError, match="asked for"):
        FrameStore(tmp_path, (6, 8, 1), 5)
    with pytest.raises(DatasetError, match=str(MAX_FRAMES)):
        FrameStore(tmp_path / "large", SHAPE, MAX_FRAMES + 1)
    assert np.float32(MAX_FRAMES - 1) != np.float32(MAX_FRAMES)  # every index below is exact as float32
