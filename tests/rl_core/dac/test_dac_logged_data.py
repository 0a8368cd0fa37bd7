import json

import numpy as np
import pytest

from rl_core.dac.experiments import discounted_returns
from rl_core.dac.logged_data import LEVELS, logged_data


def test_levels_are_logged_once_and_truncated_episodes_are_not_terminal(tmp_path):
    options = {
        "updates": 40,
        "overrides": {"hidden": [8], "batch_size": 16, "replay_size": 1000, "random_steps": 200},
        "probe_every": 20,
        "episodes": 10,
        "seed": 0,
    }
    data = logged_data("Pendulum-v1", tmp_path / "data", **options)
    written = (tmp_path / "data" / "returns.json").read_text()
    sizes = {level: len(data.dataset(level)) for level in LEVELS}
    assert sizes["random"] == sizes["expert"] == 10 and sizes["medium-replay"] >= 1
    for episode in data.dataset("random").episodes:
        assert len(episode) == 200 and episode.truncated and not episode.terminal
    assert data.score(json.loads(written)["random"]) == pytest.approx(0.0)
    assert data.score(json.loads(written)["expert"]) == pytest.approx(100.0)
    logged_data("Pendulum-v1", tmp_path / "data", **options)
    assert (tmp_path / "data" / "returns.json").read_text() == written


def test_discounted_returns_by_hand():
    np.testing.assert_allclose(discounted_returns([1.0, 2.0, 4.0], 0.5), [3.0, 4.0, 4.0])
