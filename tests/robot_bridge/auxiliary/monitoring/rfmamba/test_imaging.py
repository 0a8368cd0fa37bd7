"""The CNN on images: what it sees, and its bundle."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.monitoring.rfmamba.backprojection import SHAPE, window_images
from robot_bridge.auxiliary.monitoring.rfmamba.config import RFMambaConfig
from robot_bridge.auxiliary.monitoring.rfmamba.echoes import Recordings
from robot_bridge.auxiliary.monitoring.rfmamba.imaging import ImagingTrunk
from robot_bridge.auxiliary.monitoring.rfmamba.recogniser import train
from robot_bridge.auxiliary.registry import find_method, load_auxiliary


def test_it_sees_the_images_that_the_baselines_see(recordings: Recordings) -> None:
    windows = recordings.windows(4, 3)
    trunk, seen = ImagingTrunk(windows.geometry, width=4), []
    trunk.convolutions = torch.nn.Identity()
    with torch.no_grad():
        seen = trunk(torch.from_numpy(windows.echoes[:5]).flatten(2, 3))
    wanted = window_images(recordings, 4)[:5].unflatten(-1, SHAPE).permute(0, 1, 4, 2, 3).flatten(1, 2) * math.sqrt(math.prod(SHAPE))
    torch.testing.assert_close(seen, wanted, rtol=1e-3, atol=1e-3)


def test_its_bundle_comes_back_from_disk_without_the_matrix_that_follows_from_the_geometry(
    recordings: Recordings, tiny: RFMambaConfig, tmp_path: Path
) -> None:
    config = tiny.override(network={**tiny.to_dict()["network"], "kind": "imaging", "imaging_width": 4}, epochs=1)
    bundle = train(recordings, config, tmp_path, seed=0, say=lambda text: None)
    assert not any("steering" in name for name in bundle.weights)
    radar, again = (load_auxiliary(find_method("rfmamba"), each) for each in (bundle, Bundle.load(bundle.save(tmp_path / "bundle"))))
    echo, background = recordings.echoes[0, :4], recordings.backgrounds[0]
    one, other = radar.perceive(echo, background), again.perceive(echo, background)
    np.testing.assert_array_equal(one.joints, other.joints)
    assert one.body.shape == (4, 4, 16) and not np.allclose(one.joints, radar.perceive(echo * 1j + background, background).joints)
