from __future__ import annotations

import av
import numpy as np
import pytest

from rl_core.errors import ArmstackError
from rl_core.training.sources import RandomPolicy
from rl_core.training.video import record_episode, write_mp4
from tests.rl_core.training.toy import CONTRACT, PointWorld


def test_an_episode_becomes_an_mp4_in_true_time(tmp_path):
    file = record_episode(RandomPolicy(CONTRACT), lambda: PointWorld(render_mode="rgb_array"), 1_000_000, tmp_path / "videos" / "a.mp4")
    with av.open(str(file)) as container:
        stream = container.streams.video[0]
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]
        assert stream.average_rate == 20 and frames[0].shape == (32, 32, 3)
    world = PointWorld()
    world.reset(seed=1_000_000)
    assert len(frames) == world.left
    brightness = [frame[:, :, 0].mean() for frame in frames]
    assert all(a > b for a, b in zip(brightness, brightness[1:], strict=False))
    assert [path.name for path in file.parent.iterdir()] == ["a.mp4"]


def test_colours_are_not_swapped(tmp_path):
    red = np.zeros((32, 32, 3), np.uint8)
    red[:, :, 0] = 255
    with av.open(str(write_mp4(tmp_path / "red.mp4", [red] * 3, 20))) as container:
        pixel = next(container.decode(video=0)).to_ndarray(format="rgb24").mean(axis=(0, 1))
    assert pixel[0] > 230 and pixel[1] < 25 and pixel[2] < 25


def test_no_frames_and_no_rendering_are_named(tmp_path):
    with pytest.raises(ArmstackError, match="no frames"):
        write_mp4(tmp_path / "none.mp4", [], 20)
    with pytest.raises(ArmstackError, match="render_mode='rgb_array'"):
        record_episode(RandomPolicy(CONTRACT), PointWorld, 0, tmp_path / "a.mp4")
    assert list(tmp_path.iterdir()) == []
