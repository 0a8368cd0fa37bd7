"""The threshold on real frames, and what share of flagged frames they explain."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from robot_bridge.auxiliary.monitoring.manifold.calibration import Calibration, calibrate, verdict_correlation
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError

NUMBERS = {"mean": 0.0, "deviation": 1.0, "tile_mean": 0.0, "tile_deviation": 1.0, "k": 1.0}


def test_the_threshold_lies_k_deviations_above_the_mean() -> None:
    scores = torch.randn(4000, generator=torch.Generator().manual_seed(0)) * 3 + 10
    for k, expected in ((1.0, 0.159), (2.0, 0.023)):
        found = calibrate(scores[:2000], 1, k)
        assert float((found.excess(scores[2000:]) > 0).float().mean()) == pytest.approx(expected, abs=0.035)
        assert float(found.excess(torch.tensor(found.mean + k * found.deviation))) == pytest.approx(0, abs=1e-6)


def test_a_frame_of_several_crops_is_calibrated_on_their_mean() -> None:
    crops = torch.randn(4 * 1000, generator=torch.Generator().manual_seed(1))
    found = calibrate(crops, 2, 1.0)
    assert found.deviation == pytest.approx(0.5, rel=0.1) and found.tile_deviation == pytest.approx(1, rel=0.1)


def test_scores_that_cannot_set_a_threshold_are_refused() -> None:
    for scores in (torch.tensor([1.0]), torch.tensor([1.0, torch.nan, 2.0])):
        with pytest.raises(AuthenticityError, match="valid: 2 or more, all finite"):
            calibrate(scores, 1, 1.0)
    assert calibrate(torch.full((5,), 2.0), 1, 1.0).excess(torch.tensor([3.0])).isfinite().all()


def test_numbers_go_into_a_bundle_and_come_back() -> None:
    found = Calibration(**NUMBERS, false_positive_rate=0.2, correlation=0.3, checked=50)
    assert Calibration.from_numbers({**found.numbers(), "alpha": 0.5}) == found


def test_frames_of_one_scene_explain_more_than_as_many_scenes() -> None:
    alone = Calibration(**NUMBERS, false_positive_rate=0.16, correlation=0.0, checked=400)
    # a hundred independent frames: 0.16 + 2.326 sqrt(0.16 0.84 / 100)
    assert alone.allowed_share(np.array([100])) == pytest.approx(0.16 + 2.3263 * (0.16 * 0.84 / 100) ** 0.5, rel=1e-3)
    assert alone.allowed_share(np.array([50, 50])) == alone.allowed_share(np.array([100])) < alone.allowed_share(np.array([100]), 20)
    alike = Calibration(**NUMBERS, false_positive_rate=0.16, correlation=1.0, checked=400)
    assert (
        alike.allowed_share(np.array([100])) == pytest.approx(alike.allowed_share(np.array([1]))) and alike.allowed_share(np.array([9])) > 1
    )
    assert alike.allowed_share(np.full(30, 100)) == pytest.approx(0.16 + 2.3263 * (0.16 * 0.84 / 30) ** 0.5, rel=1e-3)
    assert Calibration(**NUMBERS, checked=100).allowed_share(np.array([100])) > 0.01  # none seen is not never


def test_the_correlation_of_verdicts_within_objects() -> None:
    generator, groups = np.random.default_rng(0), np.repeat(np.arange(100), 10)
    assert verdict_correlation(generator.random(1000) < 0.2, groups) < 0.05
    assert verdict_correlation(np.repeat(generator.random(100) < 0.2, 10), groups) == pytest.approx(1)
    half = np.where(generator.random(1000) < 0.5**0.5, np.repeat(generator.random(100) < 0.3, 10), generator.random(1000) < 0.3)
    assert verdict_correlation(half, groups) == pytest.approx(0.5, abs=0.12)
    assert verdict_correlation(np.array([True, False]), np.array([0, 1])) == 1 and verdict_correlation(np.zeros(4, bool), groups[:4]) == 1
