"""A generator that no prior here has to do with: a convolutional VAE (arXiv 1312.6114). Its samples show what a detector is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from rl_core.training.config import Config
from rl_core.training.seeding import derive_seed, preserved_rng, seed_everything, torch_generator
from robot_bridge.auxiliary.monitoring.manifold.pixels import standardise


@dataclass(frozen=True, kw_only=True)
class VAEConfig(Config):
    """Size and training."""

    side: int = 32
    """Pixels of a crop, a multiple of 8."""
    width: int = 32
    """Channels of the first convolution; the others have twice as many."""
    latent: int = 64
    """Numbers of a code."""
    beta: float = 0.1
    """Weight of KL(q(z|x) || N(0, 1)); 1 is the bound itself, with which few codes are used."""
    updates: int = 2000
    """Gradient steps."""
    batch_size: int = 64
    """Crops in a batch."""
    lr: float = 1e-3
    """Of Adam."""

    def __post_init__(self) -> None:
        self.require_least(side=8, width=1, latent=1, beta=0, updates=1, batch_size=1)
        self.require_above_zero("lr")


class VAE(nn.Module):
    """q(z|x) and the mean of p(x|z)."""

    def __init__(self, config: VAEConfig) -> None:
        super().__init__()
        self.config, wide, places = config, 2 * config.width, (config.side // 8) ** 2
        self.encoder = nn.Sequential(
            nn.Conv2d(3, config.width, 4, stride=2, padding=1),
            nn.SiLU(),
            nn.Conv2d(config.width, wide, 4, stride=2, padding=1),
            nn.SiLU(),
            nn.Conv2d(wide, wide, 4, stride=2, padding=1),
            nn.SiLU(),
            nn.Flatten(),
            nn.Linear(wide * places, 2 * config.latent),
        )
        self.decoder = nn.Sequential(
            nn.Linear(config.latent, wide * places),
            nn.Unflatten(1, (wide, config.side // 8, config.side // 8)),
            nn.SiLU(),
            nn.ConvTranspose2d(wide, wide, 4, stride=2, padding=1),
            nn.SiLU(),
            nn.ConvTranspose2d(wide, config.width, 4, stride=2, padding=1),
            nn.SiLU(),
            nn.ConvTranspose2d(config.width, 3, 4, stride=2, padding=1),
            nn.Flatten(),
        )

    def loss(self, images: Tensor, noise: Tensor) -> Tensor:
        """||x - decoder(z)||^2 / 2 + beta KL(q(z|x) || N(0, 1)), a number of (n, 3 side^2) images and (n, latent) noise."""
        mean, log_deviation = self.encoder(images.unflatten(1, (3, self.config.side, self.config.side))).chunk(2, dim=1)
        found = self.decoder(mean + log_deviation.exp() * noise)
        divergence = 0.5 * (mean.square() + (2 * log_deviation).exp() - 1) - log_deviation
        return (0.5 * F.mse_loss(found, images, reduction="sum") + self.config.beta * divergence.sum()) / len(images)

    def sample(self, count: int, seed: int) -> Tensor:
        """Images (count, 3 side^2) of codes drawn from N(0, 1)."""
        with torch.no_grad():
            return self.decoder(torch.randn(count, self.config.latent, generator=torch_generator(seed, "codes")))


def train_vae(crops: NDArray[np.uint8], config: VAEConfig, *, seed: int) -> VAE:
    """Fits one to crops (n, side, side, 3)."""
    with preserved_rng():
        seed_everything(derive_seed(seed, "vae"))
        net = VAE(config)
    optimizer, generator, images = torch.optim.Adam(net.parameters(), lr=config.lr), torch_generator(seed, "vae"), standardise(crops)
    for _ in range(config.updates):
        batch = images[torch.randint(len(images), (config.batch_size,), generator=generator)]
        loss = net.loss(batch, torch.randn(len(batch), config.latent, generator=generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net.eval()
