"""The prior that is trained here, and the generator that it never saw."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rl_core.models.diffusion import Schedule, q_sample
from rl_core.training.config import ConfigError
from robot_bridge.auxiliary.monitoring.manifold.ddpm import DDPMConfig, PixelPrior, train_ddpm
from robot_bridge.auxiliary.monitoring.manifold.pixels import cut, standardise
from robot_bridge.auxiliary.monitoring.manifold.spectrum import SpectrumPrior
from robot_bridge.auxiliary.monitoring.manifold.unet import UNet
from robot_bridge.auxiliary.monitoring.manifold.vae import VAEConfig, train_vae
from tests.robot_bridge.auxiliary.monitoring.manifold.priors import real_frames

CROPS = cut(real_frames(objects=20).frames, 8)
CONFIG = DDPMConfig(side=8, width=8, levels=20, updates=100, batch_size=32, lr=3e-3)


@pytest.fixture(scope="module")
def prior() -> PixelPrior:
    return train_ddpm(CROPS, CONFIG, seed=0)


def loss(prior: PixelPrior | SpectrumPrior, schedule: Schedule, step: int) -> float:
    images = standardise(cut(real_frames(seed=9).frames, 8))
    noise = torch.randn(images.shape, generator=torch.Generator().manual_seed(1))
    found = prior.noise(q_sample(schedule, images, torch.full((len(images),), step), noise), step)
    return float((found - noise).square().mean())


def test_the_prior_sees_noise_in_frames_that_it_was_not_trained_on(prior: PixelPrior) -> None:
    found = {step: loss(prior, prior.schedule, step) for step in (10, 14, 18)}
    assert found[18] < found[14] < found[10] < 0.75
    # more than the Gaussian of equal spectrum, from which it started, knows
    assert all(found[step] < 0.97 * loss(prior.spectrum, prior.schedule, step) for step in (10, 14))


def test_it_has_the_policies_schedule_and_says_its_sizes(prior: PixelPrior) -> None:
    assert prior.size == prior.d_feat == 3 * 8 * 8
    assert torch.allclose(prior.alphas, prior.schedule.noise.square(), atol=1e-6) and prior.alphas[0] == 0
    assert (prior.alphas.diff() > 0).all() and prior.alphas[-1] > 0.99
    samples, predicted, noise = torch.ones(1, 192), 2 * torch.ones(1, 192), 3 * torch.ones(1, 192)
    assert all(a is b for a, b in zip(prior.embed(samples, predicted, noise), (samples, predicted, noise), strict=True))


def test_training_and_samples_are_the_same_for_the_same_seed(prior: PixelPrior) -> None:
    state = torch.get_rng_state()
    short = CONFIG.override(updates=3)
    again = [train_ddpm(CROPS, short, seed=seed) for seed in (1, 1, 2)]
    assert torch.equal(torch.get_rng_state(), state)
    weights = [prior.net.first.weight for prior in again]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])
    images = prior.sample(5, 0, 10)
    assert images.shape == (5, 192) and torch.equal(images, prior.sample(5, 0, 10)) and not torch.equal(images, prior.sample(5, 1, 10))
    assert images.abs().max() <= prior.clip and prior.sample(0, 0, 10).shape == (0, 192)


def test_samples_are_smooth_where_the_frames_are(prior: PixelPrior) -> None:
    """The two halves of a crop differ by its background, far more than those of noise do."""

    def halves(images: torch.Tensor) -> float:
        grey = images.unflatten(1, (3, 8, 8)).mean(dim=1)
        down, across = (grey.mean(dim=axis).unflatten(1, (2, 4)).mean(dim=2) for axis in (2, 1))
        return float(((down[:, 0] - down[:, 1]).square() + (across[:, 0] - across[:, 1]).square()).mean())

    real, made, noise = standardise(CROPS), prior.sample(64, 3, 20), torch.randn(64, 192)
    assert halves(made) > 0.5 * halves(real) > 5 * halves(noise)


def test_the_network_keeps_its_shape_and_starts_as_nothing() -> None:
    net = UNet(16, 16)
    x = torch.randn(2, 768)
    assert net(x, torch.tensor([1, 50])).shape == (2, 768) and net(x, torch.tensor([1, 50])).abs().max() == 0
    assert all(parameter.grad is not None for parameter in _after_a_step(net, x))


def _after_a_step(net: UNet, x: torch.Tensor) -> list[torch.nn.Parameter]:
    net(x, torch.tensor([1, 50])).square().sum().backward()
    return list(net.parameters())


def test_sizes_that_cannot_be_halved_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"DDPMConfig.side: 20, valid: a multiple of 8"):
        DDPMConfig(side=20)
    with pytest.raises(ConfigError, match=r"DDPMConfig.ema: 1.0, valid: 0 or more, below 1"):
        DDPMConfig(ema=1.0)


def test_the_other_generator_learns_the_frames() -> None:
    config = VAEConfig(side=8, width=8, latent=8, updates=150, batch_size=32, lr=3e-3)
    net, images = train_vae(CROPS, config, seed=0), standardise(CROPS)
    with torch.no_grad():
        mean, _ = net.encoder(images.unflatten(1, (3, 8, 8))).chunk(2, dim=1)
        explained = 1 - float((net.decoder(mean) - images).square().mean() / images.square().mean())
    made = net.sample(6, 0)
    assert explained > 0.5 and made.shape == (6, 192)
    assert torch.equal(made, net.sample(6, 0)) and not torch.equal(made, net.sample(6, 1)) and np.isfinite(made.numpy()).all()
