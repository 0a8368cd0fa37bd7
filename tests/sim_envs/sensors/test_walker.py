"""A scripted visit: where the walker is, and what a radar hears of it."""

from __future__ import annotations

import numpy as np
import pytest

from sim_envs.sensors.humanoid import KEYPOINTS
from sim_envs.sensors.motions import ACTIVITIES
from sim_envs.sensors.recordings import RadarScene, Recorder
from sim_envs.sensors.visit import record_visit
from sim_envs.sensors.walker import Walker

PATH = [(0.0, 3.0, 0.5), (1.0, 3.0, 0.5), (3.0, 1.0, 0.5), (4.0, 1.0, 0.5)]


def test_a_walker_is_where_the_path_says_and_looks_where_they_go() -> None:
    walker = Walker(PATH)
    motion = walker.motion([-1.0, 0.5, 2.0, 3.5, 9.0])
    np.testing.assert_allclose(motion.position[:, :2], [[3, 0.5], [3, 0.5], [2, 0.5], [1, 0.5], [1, 0.5]])
    assert [ACTIVITIES[index] for index in motion.activity] == ["standing", "standing", "walking", "standing", "standing"]
    np.testing.assert_allclose(np.abs(motion.quaternion[2:4]), [[0, 0, 0, 1]] * 2, atol=1e-9)  # towards -x, and so they stand
    assert walker.speed_mps == pytest.approx(1.0) and walker.duration_s == 4.0
    keypoints = walker.keypoints([0.5])[0]
    assert keypoints[KEYPOINTS.index("head"), 2] == pytest.approx(-0.7 + 0.92 + 0.71)
    assert np.linalg.norm(keypoints[:, :2] - [3.0, 0.5], axis=1).max() < 0.6


def test_a_walk_that_repeats_begins_anew() -> None:
    walker = Walker([*PATH[:3], (6.0, 3.0, 0.5)], repeat=True)
    np.testing.assert_allclose(walker.motion([2.0]).position, walker.motion([8.0]).position)


def test_capsules_are_the_body() -> None:
    walker = Walker(PATH)
    ends, radii = walker.capsules(3.5), walker.radii
    assert ends.shape == (len(radii), 2, 3)
    low, high = (ends[..., 2].min(1) - radii).min(), (ends[..., 2].max(1) + radii).max()
    assert low == pytest.approx(-0.7, abs=0.05) and high - low == pytest.approx(1.74, abs=0.05)
    near = walker.keypoints([3.5])[0]
    length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    assert length.max() == pytest.approx(0.43, abs=0.01)  # a thigh
    assert np.linalg.norm(near[:, None, None] - ends, axis=-1).min(axis=(1, 2)).max() < 0.2


@pytest.mark.parametrize(
    "path", [[], [(0, 1, 1)], [(0, 1, 1), (0, 2, 2)], [(1, 1, 1), (2, 2, 2)], [(0, 1), (1, 2)], [(0, 1, 1), (1, np.nan, 2)]]
)
def test_a_path_that_is_none_is_refused(path: list[tuple[float, ...]]) -> None:
    with pytest.raises(ValueError, match="valid: two or more rows .seconds, x, y., finite, seconds rising from 0"):
        Walker(path)


def test_a_radar_hears_a_walker_where_they_are() -> None:
    """The strongest range bin over the background, of each antenna pair, is the body's bistatic path."""
    scene = RadarScene(snr_db=40.0, dropout=0.0)
    recorder, walker = Recorder(scene, np.random.default_rng(0)), Walker(PATH)
    visit = record_visit(recorder, walker, np.random.default_rng(1))
    assert visit.echoes.shape == (40, 4, 4, 32) and visit.background.shape == (4, 4, 32)
    array = recorder.array
    for seconds in (0.5, 3.5):
        profile = np.abs(np.fft.ifft(visit.window(seconds, 1)[0] - visit.background, axis=-1))
        body = walker.keypoints([int(seconds * 10) / 10])[0][[1, 8, 11]].mean(0)  # neck and hips
        ways = [np.linalg.norm(antennas - body, axis=1) for antennas in (array.transmitters, array.receivers)]
        expected = (ways[0][:, None] + ways[1][None]) / array.bin_m % 32
        away = np.abs(profile.argmax(-1) - expected)
        assert np.median(np.minimum(away, 32 - away)) * array.bin_m < 0.5


def test_windows_end_with_the_newest_frame() -> None:
    visit = record_visit(Recorder(RadarScene(), np.random.default_rng(0)), Walker(PATH), np.random.default_rng(1))
    assert np.array_equal(visit.window(1.05, 3), visit.echoes[8:11])
    assert np.array_equal(visit.window(0.1, 3), visit.echoes[[0, 0, 1]])
    assert np.array_equal(visit.window(9.0, 2), visit.echoes[[39, 39]])
    assert np.array_equal(visit.window(4.0, 3, repeat=True), visit.echoes[[38, 39, 0]])
