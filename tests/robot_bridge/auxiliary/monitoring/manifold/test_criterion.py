"""Signs and sizes of the terms, on the standard normal prior whose denoiser is exact."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from robot_bridge.auxiliary.monitoring.manifold.criterion import Weights, spherical_noises, step_of, terms
from robot_bridge.auxiliary.monitoring.manifold.errors import AuthenticityError
from tests.robot_bridge.auxiliary.monitoring.manifold.priors import StandardNormal, scaled_crops

SCALES = (0.3, 0.6, 1.0, 1.4)


def both_ways(size: int, count: int = 64) -> torch.Tensor:
    """Directions and their opposites: what is linear in them cancels."""
    some = spherical_noises(size, count, 0)
    return torch.cat((some, -some))


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_terms_are_those_of_the_closed_form(alpha: float) -> None:
    prior, crops = StandardNormal(), scaled_crops(SCALES)
    step = step_of(prior, alpha)
    found = terms(prior, crops, step, both_ways(prior.size))
    squared, d = prior.encode(crops).square().sum(dim=1), prior.size
    length = ((1 - alpha) * squared + alpha * d).sqrt()
    assert torch.allclose(found["kappa"], math.sqrt(alpha) * d / length, rtol=0.02)
    assert torch.allclose(found["gradient"], math.sqrt(alpha) * length, rtol=0.02)
    assert torch.allclose(found["bias"], math.sqrt(d) * math.sqrt(1 - alpha) * squared / length, rtol=0.02)
    # x~ - sqrt(alpha) h = (1 - alpha) x~, so the clean sample is taken for sqrt(1 - alpha) x~
    missed = (1 - alpha) * (alpha * d + (1 - alpha) * squared) - 2 * (1 - alpha) * squared + squared
    assert torch.allclose(found["reconstruction"], missed / d, rtol=0.02)


def test_curvature_falls_and_gradient_and_bias_grow_with_the_norm() -> None:
    prior = StandardNormal()
    found = terms(prior, scaled_crops(SCALES), step_of(prior, 0.3), spherical_noises(prior.size, 32, 1))
    assert (found["kappa"].diff() < 0).all() and (found["gradient"].diff() > 0).all() and (found["bias"].diff() > 0).all()
    # what is near the maximum of the density is taken as generated; the bias term of a shrinking denoiser says the opposite
    assert (Weights().combine(found["kappa"], found["gradient"], found["bias"]).diff() < 0).all()
    assert (Weights(a=0, b=0, c=1).combine(found["kappa"], found["gradient"], found["bias"]).diff() > 0).all()


def test_weights_are_a_minus_b_plus_c() -> None:
    kappa, gradient, bias = torch.tensor([2.0]), torch.tensor([3.0]), torch.tensor([5.0])
    assert Weights(a=7.0, b=11.0, c=13.0).combine(kappa, gradient, bias).item() == 7 * 2 - 11 * 3 + 13 * 5
    assert Weights().c == 0


def test_the_dimension_of_the_features_is_the_priors_own_number() -> None:
    """The released code has 512 for vectors of 768 numbers."""
    crops, noises = scaled_crops((1.0,)), spherical_noises(192, 16, 0)
    found = {d: terms(StandardNormal(d_feat=d), crops, 40, noises) for d in (512, 768)}
    assert torch.allclose(found[768]["bias"], found[512]["bias"] * math.sqrt(768 / 512))
    assert torch.equal(found[768]["kappa"], found[512]["kappa"])


def test_noises_lie_on_the_sphere_and_are_the_same_in_every_call() -> None:
    noises = spherical_noises(192, 16, 5)
    assert torch.allclose(noises.norm(dim=1), torch.full((16,), math.sqrt(192)), rtol=1e-5)
    assert torch.equal(noises, spherical_noises(192, 16, 5)) and not torch.equal(noises, spherical_noises(192, 16, 6))
    with pytest.raises(AuthenticityError, match="0 noises, valid: 1 or more"):
        spherical_noises(192, 0, 0)


def test_a_crop_is_judged_the_same_whatever_stands_beside_it() -> None:
    prior, noises = StandardNormal(), spherical_noises(192, 16, 0)
    crops = np.random.default_rng(3).integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)
    whole, one = terms(prior, crops, 30, noises), terms(prior, crops[33:34], 30, noises)
    assert all(torch.allclose(whole[name][33:34], one[name], rtol=1e-5) for name in whole)
    assert all(len(values) == 0 for values in terms(prior, crops[:0], 30, noises).values())


def test_paired_noises_take_away_what_the_draw_adds() -> None:
    """Two nearly equal crops: with their own noises each, the difference drowns."""
    prior, crops = StandardNormal(), scaled_crops((1.0, 1.02))

    def difference(first: int, second: int) -> float:
        one, other = (terms(prior, crops[[row]], 50, spherical_noises(192, 16, seed)) for row, seed in enumerate((first, second)))
        return float(one["kappa"] - other["kappa"])

    paired, alone = [difference(seed, seed) for seed in range(40)], [difference(seed, 100 + seed) for seed in range(40)]
    assert min(paired) > 0 and np.std(paired) < 0.2 * np.std(alone)


def test_noises_of_another_size_are_refused_and_steps_begin_at_one() -> None:
    prior = StandardNormal()
    with pytest.raises(AuthenticityError, match=r"noises of \(191,\) numbers, valid: \(192,\)"):
        terms(prior, scaled_crops((1.0,)), 5, spherical_noises(191, 4, 0))
    assert step_of(prior, 1e-9) == 1 and step_of(prior, 0.65) == 65
