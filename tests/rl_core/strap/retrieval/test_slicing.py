import numpy as np
import pytest

from rl_core.data.episode import DatasetError
from rl_core.strap.sdtw import RetrievalError
from rl_core.strap.slicing import Stops, slice_episode, slice_path
from tests.rl_core.strap.retrieval.demos import A, B, C, demo, path


def test_a_stop_and_go_path_is_cut_at_its_stops() -> None:
    positions = path(np.array([A, B, C]), steps=30)
    segments = slice_path(positions[:-1], Stops())
    assert segments[0][0] == 0 and segments[-1][1] == 60
    assert len(segments) == 2 and 27 <= segments[0][1] <= 30
    assert [b for _, b in segments[:-1]] == [a for a, _ in segments[1:]]


def test_short_segments_are_glued_to_the_next_and_a_short_last_one_to_the_one_before() -> None:
    moving = np.full(50, 0.1)
    moving[[4, 29, 44]] = 0.0  # stops at steps 4, 29 and 44: pieces of 5, 25, 15 and 6 frames
    positions = np.concatenate([np.zeros((1, 3)), np.cumsum(np.outer(moving, [1, 0, 0]), axis=0)])
    assert slice_path(positions, Stops(min_length=1)) == [(0, 5), (5, 30), (30, 45), (45, 51)]
    assert slice_path(positions, Stops(min_length=10)) == [(0, 30), (30, 51)]
    assert slice_path(positions, Stops(min_length=20)) == [(0, 30), (30, 51)]
    assert slice_path(positions, Stops(min_length=30)) == [(0, 51)]


def test_a_demonstration_shorter_than_the_minimum_is_one_segment() -> None:
    """The released code looked for the last of no segments here."""
    assert slice_path(np.zeros((7, 3)), Stops(min_length=20)) == [(0, 7)]
    assert slice_path(np.zeros((1, 3)), Stops(min_length=20)) == [(0, 1)]


def test_all_frames_are_covered_once_whatever_the_threshold() -> None:
    rng = np.random.default_rng(0)
    positions = np.cumsum(0.01 * rng.normal(size=(90, 3)), axis=0)
    for stops in (Stops(threshold=0.01), Stops(threshold=1.0, min_length=3), Stops(percentile=30, min_length=4)):
        segments = slice_path(positions, stops)
        frames = np.concatenate([np.arange(start, stop) for start, stop in segments])
        np.testing.assert_array_equal(frames, np.arange(90))
        assert all(stop - start >= stops.min_length for start, stop in segments)


def test_a_percentile_does_not_depend_on_the_step_size() -> None:
    positions = path(np.array([A, B, C]), steps=30)
    segments = slice_path(positions, Stops(percentile=10))
    assert segments == slice_path(positions * 0.01, Stops(percentile=10)) and len(segments) == 2
    assert slice_path(positions * 0.01, Stops()) != slice_path(positions, Stops())


def test_an_episode_is_sliced_over_its_steps_by_its_end_effector() -> None:
    episode = demo(np.array([A, B, C]), uuid="one", lang="go")
    segments = slice_episode(episode, Stops())
    assert segments[-1][1] == len(episode)
    blind = demo(np.array([A, B]), uuid="two", lang="go")
    del blind.observations["eef_pos"]  # type: ignore[attr-defined]
    with pytest.raises(DatasetError, match=r"episode two: no end effector; valid channels: \['eef_pos', 'ee_pos'\], found"):
        slice_episode(blind, Stops())


@pytest.mark.parametrize("wrong", [{"threshold": 0.0}, {"threshold": float("nan")}, {"min_length": 0}, {"percentile": 101.0}])
def test_wrong_thresholds_are_refused(wrong) -> None:
    with pytest.raises(RetrievalError, match="valid"):
        Stops(**wrong)
