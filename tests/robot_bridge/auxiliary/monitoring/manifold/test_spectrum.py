"""The Gaussian that a prior starts from."""

from __future__ import annotations

import torch

from rl_core.models.diffusion import cosine_schedule, q_sample
from robot_bridge.auxiliary.monitoring.manifold.ddpm import DDPMConfig, PixelPrior, new_unet
from robot_bridge.auxiliary.monitoring.manifold.spectrum import SpectrumPrior

SIDE, SCHEDULE = 8, cosine_schedule(20)


def smooth_images(count: int, seed: int) -> torch.Tensor:
    """Gaussian noise whose power falls with the frequency, of coupled colours."""
    noise = torch.randn(count, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(seed))
    frequency = torch.fft.fftfreq(SIDE, 1 / SIDE)
    power = 1 / (1 + frequency[:, None] ** 2 + frequency[None, :] ** 2)
    images = torch.fft.ifft2(torch.fft.fft2(noise) * power.sqrt()).real
    images = torch.einsum("kc,ncij->nkij", torch.tensor([[1.0, 0.5, 0.2], [0.0, 1.0, 0.5], [0.3, 0.0, 0.4]]), images).flatten(1)
    return images / images.std()


def test_its_denoiser_misses_what_the_formula_says_and_less_than_any_other_of_its_kind() -> None:
    spectrum, images = SpectrumPrior.of(smooth_images(3000, 0), SIDE, SCHEDULE), smooth_images(1000, 1)
    noise = torch.randn(images.shape, generator=torch.Generator().manual_seed(2))
    for step in (4, 10, 16):
        noisy = q_sample(SCHEDULE, images, torch.full((len(images),), step), noise)
        missed = float((spectrum.noise(noisy, step) - noise).square().mean())
        assert abs(missed / float(spectrum.spread[step]) ** 2 - 1) < 0.03
        white = float((SCHEDULE.noise[step] * noisy - noise).square().mean())  # the denoiser of N(0, I)
        assert missed < 0.9 * white


def test_of_white_noise_it_is_the_denoiser_of_the_standard_normal() -> None:
    images = torch.randn(4000, 192, generator=torch.Generator().manual_seed(0))
    spectrum = SpectrumPrior.of(images, SIDE, SCHEDULE)
    x = torch.randn(5, 192)
    assert torch.allclose(spectrum.noise(x, 9), SCHEDULE.noise[9] * x, atol=0.1)
    assert torch.allclose(spectrum.colours @ spectrum.colours.T, torch.eye(3), atol=1e-5)


def test_each_sample_may_have_a_step_of_its_own() -> None:
    spectrum, x = SpectrumPrior.of(smooth_images(200, 0), SIDE, SCHEDULE), smooth_images(3, 1)
    together = spectrum.noise(x, torch.tensor([1, 7, 20]))
    assert all(torch.allclose(together[row], spectrum.noise(x[[row]], step)[0], atol=1e-5) for row, step in enumerate((1, 7, 20)))
    assert spectrum.spread.isfinite().all() and spectrum.noise(x, 1).isfinite().all()


def test_an_untrained_prior_is_this_gaussian() -> None:
    images = smooth_images(200, 0)
    prior = PixelPrior(new_unet(DDPMConfig(side=SIDE, width=8), 0), SpectrumPrior.of(images, SIDE, SCHEDULE), SCHEDULE, clip=9.0)
    assert torch.equal(prior.noise(images, 6), prior.spectrum.noise(images, 6))
