"""A pixel-space prior that is trained here: a DDPM (arXiv 2006.11239) on crops of camera frames, with the policies' noise schedule."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from rl_core.models.diffusion import Schedule, cosine_schedule, ddim_sample, q_sample
from rl_core.models.ema import ema_update
from rl_core.training.config import Config, ConfigError
from rl_core.training.seeding import derive_seed, preserved_rng, seed_everything, torch_generator
from robot_bridge.auxiliary.monitoring.manifold.pixels import standardise
from robot_bridge.auxiliary.monitoring.manifold.spectrum import SpectrumPrior
from robot_bridge.auxiliary.monitoring.manifold.unet import UNet

_WARM_UP = 0.05
_CLIPPED = 0.999
_AT_ONCE = 64


@dataclass(frozen=True, kw_only=True)
class DDPMConfig(Config):
    """Size of the prior and how it is trained."""

    side: int = 32
    """Pixels of a crop, width and height, a multiple of 8."""
    width: int = 32
    """Channels of the finest resolution, a multiple of 8 [here]."""
    levels: int = 100
    """T, steps of the noise schedule [here; 1000 in the paper's model]."""
    updates: int = 8000
    """Gradient steps."""
    batch_size: int = 64
    """Crops in a batch."""
    lr: float = 1e-3
    """Of Adam, after a short warm-up; falls to 0 along a cosine."""
    ema: float = 0.995
    """Share of the old average that stays at each step; the average is what judges."""

    def __post_init__(self) -> None:
        self.require_least(side=8, width=8, levels=2, updates=1, batch_size=1, ema=0)
        self.require_above_zero("lr")
        for name in ("side", "width"):
            if getattr(self, name) % 8:
                raise ConfigError(f"DDPMConfig.{name}: {getattr(self, name)}, valid: a multiple of 8")
        if self.ema >= 1:
            raise ConfigError(f"DDPMConfig.ema: {self.ema}, valid: 0 or more, below 1")


class PixelPrior:
    """See `prior.Prior`; d = 3 side^2, and d_feat = d: angles are taken between pixels.

    h(x_t) = spectrum(x_t) + spread_t net(x_t, t): the network learns what the Gaussian of equal spectrum misses, at unit size.

    Args:
        net: the network.
        spectrum: that Gaussian.
        schedule: noise levels.
        clip: bound of a sample's numbers while it is made, from the training crops.
    """

    def __init__(self, net: UNet, spectrum: SpectrumPrior, schedule: Schedule, clip: float) -> None:
        self.net, self.spectrum, self.schedule, self.clip = net.eval(), spectrum, schedule, clip
        self.size = self.d_feat = 3 * net.side**2
        self.alphas = 1 - self.schedule.alpha_bar

    def encode(self, crops: NDArray[np.uint8]) -> Tensor:
        """See `prior.Prior`."""
        return standardise(crops)

    def noise(self, x: Tensor, step: int) -> Tensor:
        """See `prior.Prior`."""
        with torch.no_grad():
            return self.spectrum.noise(x, step) + self.spectrum.spread[step] * self.net(x, torch.full((len(x),), step))

    def embed(self, samples: Tensor, predicted: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See `prior.Prior`."""
        return samples, predicted, noise

    def sample(self, count: int, seed: int, steps: int) -> Tensor:
        """Images (count, d) of the model, by DDIM in that many steps.

        Args:
            count: how many.
            seed: of their noise.
            steps: of the sampler, at most T.
        """
        start = torch.randn(count, self.size, generator=torch_generator(seed, "samples"))
        pieces = start.split(_AT_ONCE) if count else ()
        found = [ddim_sample(self.noise, self.schedule, each, steps=min(steps, self.schedule.steps), clip=self.clip) for each in pieces]
        return torch.cat(found) if found else start


class DDPMTraining:
    """Minimises  E_{x_0, t, eps} ||(eps - spectrum(x_t)) / spread_t - net(x_t, t)||^2 / d.

    A network of zeros is the exact denoiser of the Gaussian of equal spectrum: training begins there. t is uniform in 1 .. T; each crop
    is mirrored every other time. Put back with `load_state_dict`, it goes on to the bit.

    Attributes:
        updates: gradient steps made so far.

    Args:
        crops: (n, side, side, 3) uint8, real ones.
        config: settings.
        seed: of weights, batches and noise.
    """

    def __init__(self, crops: NDArray[np.uint8], config: DDPMConfig, seed: int) -> None:
        self.config, self.updates = config, 0
        self._net = new_unet(config, seed)
        self._average = copy.deepcopy(self._net)
        self._generator, self._schedule = torch_generator(seed, "ddpm"), cosine_schedule(config.levels)
        self._images = standardise(crops)
        self._spectrum = SpectrumPrior.of(self._images, config.side, self._schedule)
        self._optimizer = torch.optim.Adam(self._net.parameters(), lr=config.lr)
        self._rates = torch.optim.lr_scheduler.LambdaLR(self._optimizer, lambda update: _rate(update / config.updates))

    def update(self) -> float:
        """One gradient step; its loss."""
        config, generator = self.config, self._generator
        self.updates += 1
        batch = self._images[torch.randint(len(self._images), (config.batch_size,), generator=generator)]
        turned = torch.rand(config.batch_size, generator=generator) < 0.5
        batch = torch.where(turned[:, None], _mirrored(batch, config.side), batch)
        t = torch.randint(1, config.levels + 1, (config.batch_size,), generator=generator)
        noise = torch.randn(batch.shape, generator=generator)
        noisy = q_sample(self._schedule, batch, t, noise)
        loss = F.mse_loss(self._net(noisy, t), (noise - self._spectrum.noise(noisy, t)) / self._spectrum.spread[t, None])
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        self._rates.step()
        # early on the average would still hold the initial weights
        ema_update(self._average, self._net, 1 - min(config.ema, self.updates / (self.updates + 10)))
        return float(loss.detach())

    def prior(self) -> PixelPrior:
        """What was learned: the average of the weights."""
        largest = float(self._images.abs().flatten()[:: max(1, self._images.numel() // 10**6)].quantile(_CLIPPED))
        return PixelPrior(self._average, self._spectrum, self._schedule, largest)

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        parts = {name: part.state_dict() for name, part in self._parts().items()}
        return {**parts, "generator": self._generator.get_state(), "updates": self.updates}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """What `state_dict` gave, of equal crops, settings and seed."""
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self._generator.set_state(state["generator"])
        self.updates = state["updates"]

    def _parts(self) -> dict[str, Any]:
        return {"net": self._net, "average": self._average, "optimizer": self._optimizer, "rates": self._rates}


def train_ddpm(crops: NDArray[np.uint8], config: DDPMConfig, *, seed: int) -> PixelPrior:
    """All updates of `DDPMTraining` in one go."""
    training = DDPMTraining(crops, config, seed)
    while training.updates < config.updates:
        training.update()
    return training.prior()


def new_unet(config: DDPMConfig, seed: int) -> UNet:
    """With initial weights of that seed."""
    with preserved_rng():
        seed_everything(derive_seed(seed, "unet"))
        return UNet(config.side, config.width)


def _rate(done: float) -> float:
    return min(done / _WARM_UP, 1.0) * 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))


def _mirrored(images: Tensor, side: int) -> Tensor:
    return images.unflatten(1, (3, side, side)).flip(3).flatten(1)
