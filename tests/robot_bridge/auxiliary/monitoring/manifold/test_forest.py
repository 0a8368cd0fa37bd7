"""The forest and the mixture that it decides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.monitoring.detection import auroc
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from robot_bridge.auxiliary.monitoring.manifold.few_shot import Mixture, fit_mixture
from robot_bridge.auxiliary.monitoring.manifold.forest import fit_forest


def crossed(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Class 1 where two of three features have unlike signs: none of them tells alone."""
    samples = np.random.default_rng(seed).normal(size=(count, 3))
    return samples, (samples[:, 0] * samples[:, 1] < 0).astype(np.int64)


def test_a_forest_learns_what_no_feature_tells_alone() -> None:
    forest = fit_forest(*crossed(400, 0), trees=60)
    samples, labels = crossed(400, 1)
    found = forest.probability(samples)
    assert found.min() >= 0 and found.max() <= 1 and auroc(found[labels == 1], found[labels == 0]) > 0.9
    assert all(max(auroc(x[labels == 1], x[labels == 0]), 1 - auroc(x[labels == 1], x[labels == 0])) < 0.6 for x in samples.T)


def test_one_split_by_hand() -> None:
    samples, labels = np.array([[0.0], [1.0], [4.0], [5.0]] * 5), np.array([0, 0, 1, 1] * 5)
    forest = fit_forest(samples, labels, trees=20, depth=1)
    split = forest.feature[:, 0] == 0
    assert split.all() and ((forest.threshold[:, 0] > 0.9) & (forest.threshold[:, 0] < 4.1)).all()
    assert forest.probability(np.array([[-3.0], [9.0]])).tolist() == [0.0, 1.0]


def test_a_forest_is_the_same_for_the_same_seed() -> None:
    first, again, other = (fit_forest(*crossed(80, 0), trees=5, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(first.threshold, again.threshold) and first.threshold.shape[0] == 5
    assert first.threshold.shape != other.threshold.shape or not torch.equal(first.threshold, other.threshold)


def test_one_class_and_too_few_features_are_refused() -> None:
    with pytest.raises(AuthenticityError, match=r"4 samples of classes \[1\]; valid: finite ones of classes 0 and 1"):
        fit_forest(np.zeros((4, 2)), np.ones(4, np.int64))
    with pytest.raises(AuthenticityError, match="samples of 1 features, valid: 3 or more"):
        fit_forest(*crossed(60, 0), trees=30).probability(np.zeros((3, 1)))


def mixed(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Terms and features that each tell a little, and labels."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 2
    terms = torch.randn(count, 4, generator=generator) + 0.8 * labels[:, None]
    features = torch.randn(count, 16, generator=generator)
    features[:, 0] += 3 * labels
    return terms, features, labels


def test_the_mixture_says_the_same_after_it_was_a_bundle_and_features_help(tmp_path: Path) -> None:
    terms, features, labels = mixed(100, 0)
    tests, seen, known = mixed(300, 1)
    rates = {}
    for name, given in (("terms", None), ("both", features)):
        mixture = fit_mixture(terms, labels, given, seed=2)
        Bundle(kind="recogniser", method="manifold", config={}, weights={}, arrays=mixture.arrays()).save(tmp_path / name)
        loaded = Mixture.from_arrays(Bundle.load(tmp_path / name).arrays)
        assert loaded is not None and bool(loaded.probe) == (name == "both")
        found = mixture.probability(tests, seen)
        assert found.dtype == torch.float32 and torch.equal(found, loaded.probability(tests, seen))
        rates[name] = auroc(found[known == 1].numpy(), found[known == 0].numpy())
    assert rates["both"] > rates["terms"] > 0.75
    assert Mixture.from_arrays({"noises": terms}) is None


def test_too_few_labels_are_refused() -> None:
    with pytest.raises(AuthenticityError, match="3 real and 2 generated crops with a label; valid: 5 or more of each"):
        fit_mixture(torch.zeros(5, 4), torch.tensor([0, 1, 0, 1, 0]))
