"""Baselines and the sweep, against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from robot_bridge.auxiliary.monitoring.manifold.baselines import contrast, rigid, slope
from robot_bridge.auxiliary.monitoring.manifold.criterion import Weights, spherical_noises
from robot_bridge.auxiliary.monitoring.manifold.scoring import OF_PRIOR, Reference, scores_of_terms
from robot_bridge.auxiliary.monitoring.manifold.sweep import Level, best_level, sweep, table
from tests.robot_bridge.auxiliary.monitoring.manifold.priors import StandardNormal, flat_frames, real_frames, scaled_crops


def test_the_slope_is_that_of_the_spectrum() -> None:
    side, generator = 32, np.random.default_rng(0)
    rows, columns = np.meshgrid(np.fft.fftfreq(side, 1 / side), np.fft.fftfreq(side, 1 / side), indexing="ij")
    frequency = np.maximum(np.hypot(rows, columns), 1)
    for exponent in (0.0, -1.0, -2.0, -3.0):
        spectrum = np.fft.fft2(generator.normal(size=(40, 3, side, side))) * frequency ** (exponent / 2)
        images = np.fft.ifft2(spectrum).real.transpose(0, 2, 3, 1)
        crops = (128 + 30 * images / images.std(axis=(1, 2, 3), keepdims=True)).round().clip(0, 255).astype(np.uint8)
        assert float(slope(crops).mean()) == pytest.approx(-exponent, abs=0.2)


def test_flat_pictures_have_the_higher_score_of_contrast() -> None:
    assert contrast(flat_frames(10)).min() > contrast(real_frames().frames).max()


def test_rigid_is_how_far_features_move_and_takes_the_same_noise_for_all() -> None:
    crops = np.full((3, 8, 8, 3), 128, np.uint8)
    seen: list[np.ndarray] = []

    def features(frames: np.ndarray) -> torch.Tensor:
        seen.append(frames)
        turned = torch.tensor([0.0, 0.5, 1.0]) * (len(seen) > 1)
        return torch.stack((turned.cos(), turned.sin()), dim=1)

    found = rigid(features, crops)
    assert torch.allclose(found, 1 - torch.tensor([0.0, 0.5, 1.0]).cos(), atol=1e-6)
    assert len(seen) == 4 and all((frames == frames[:1]).all() for frames in seen) and seen[1].dtype == np.uint8
    assert not np.array_equal(seen[1], seen[2]) and seen[1].std() == pytest.approx(0.05 * 255, rel=0.2)


def test_scores_are_in_deviations_of_real_crops_and_higher_for_generated_ones() -> None:
    found = {name: torch.tensor([1.0, 3.0]) for name in ("kappa", "gradient", "bias", "reconstruction")}
    reference = Reference.of(found)
    assert reference.mean["kappa"] == 2 and reference.deviation["kappa"] == 1
    scores = scores_of_terms(reference.standardised({name: torch.tensor([4.0]) for name in found}), Weights(a=1, b=0.5, c=0.25))
    assert {name: values.item() for name, values in scores.items()} == {
        "criterion": 2 - 0.5 * 2 + 0.25 * 2, "kappa": 2, "gradient": -2, "bias": 2, "reconstruction": -2
    }  # fmt: skip


def test_the_sweep_judges_every_alpha_and_each_score_takes_its_own_best() -> None:
    prior = StandardNormal()
    generator = np.random.default_rng(0)
    real = scaled_crops(tuple(generator.uniform(0.9, 1.3, 30)))
    own = scaled_crops(tuple(generator.uniform(0.6, 1.0, 30)))  # nearer to the maximum of the density
    levels = sweep(prior, own, real, spherical_noises(prior.size, 16, 0), Weights(), alphas=(0.1, 0.104, 0.5, 0.9))
    assert [level.step for level in levels] == [10, 50, 90] and levels[1].alpha == pytest.approx(0.5)
    assert all(level.auc["kappa"] > 0.9 and level.auc["gradient"] > 0.9 and level.auc["bias"] < 0.1 for level in levels)
    assert table(levels).shape == (3, 2 + len(OF_PRIOR)) and table(levels)[:, 0].tolist() == [10, 50, 90]
    made_up = [
        Level(step=step, alpha=step / 10, auc={**dict.fromkeys(OF_PRIOR, 0.5), name: 0.9}) for step, name in ((1, "criterion"), (2, "bias"))
    ]
    assert [best_level(made_up, score).step for score in ("criterion", "bias", "slope")] == [1, 2, 1]
